#include "sync/collective/gloo_transport.h"
#include "tests/conformance/transport_suite.h"

namespace {

using namespace rivulet;

/// Gloo over loopback, one process group per thread.
class GlooNet {
 public:
  static constexpr Duration deadline = std::chrono::seconds(1);
  sync::Connect connect(std::uint32_t) {
    sync::GlooConfig config;
    config.transport.progress_deadline = deadline;
    auto connect = sync::make_gloo_connect(config, clock_);
    REQUIRE(connect);
    return std::move(connect).value();
  }
  sync::AddressBook& book() { return book_; }

 private:
  RealClock clock_;
  testing::TempDir folder_;
  testing::FolderBook book_{folder_.path()};
};

}  // namespace

namespace rivulet::testing {
RIVULET_TRANSPORT_SUITE(GlooNet);
}
