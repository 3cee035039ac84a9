#include "sync/transport/gloo_transport.h"
#include "tests/conformance/aggregation_suite.h"
#include "tests/conformance/state_suite.h"
#include "tests/conformance/transport_suite.h"

namespace {

using namespace rivulet;

/// Gloo over loopback, one process group per thread.
class GlooNet {
 public:
  static constexpr Duration deadline = std::chrono::seconds(1);
  explicit GlooNet(Duration progress_deadline = std::chrono::seconds(20)) : deadline_(progress_deadline) {}
  sync::Connect connect(std::uint32_t) {
    sync::GlooConfig config;
    config.transport.progress_deadline = deadline_;
    auto connect = sync::make_gloo_connect(config, clock_);
    REQUIRE(connect);
    return std::move(connect).value();
  }
  sync::AddressBook& book() { return book_; }

 private:
  Duration deadline_;
  RealClock clock_;
  testing::TempDir folder_;
  testing::FolderBook book_{folder_.path()};
};

}  // namespace

namespace rivulet::testing {
RIVULET_TRANSPORT_SUITE(GlooNet);
RIVULET_AGGREGATION_SUITE(GlooNet);
RIVULET_STATE_SUITE(GlooNet);
}  // namespace rivulet::testing
