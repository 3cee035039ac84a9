#include "sync/transport/memory_transport.h"
#include "tests/conformance/aggregation_suite.h"
#include "tests/conformance/state_suite.h"
#include "tests/conformance/transport_suite.h"

namespace {

using namespace rivulet;

/// The in-memory network between real threads.
class MemoryNet {
 public:
  static constexpr Duration deadline = std::chrono::seconds(1);
  explicit MemoryNet(Duration progress_deadline = std::chrono::seconds(20)) : deadline_(progress_deadline) {}
  sync::Connect connect(std::uint32_t) { return network_.connect_for(clock_); }
  sync::AddressBook& book() { return book_; }

 private:
  Duration deadline_;
  RealClock clock_;
  testing::TempDir folder_;
  testing::FolderBook book_{folder_.path()};
  sync::MemoryNetwork network_{{}, {.progress_deadline = deadline_, .chunk_bytes = 256 * 1024}};
};

}  // namespace

namespace rivulet::testing {
RIVULET_TRANSPORT_SUITE(MemoryNet);
RIVULET_AGGREGATION_SUITE(MemoryNet);
RIVULET_STATE_SUITE(MemoryNet);
}  // namespace rivulet::testing
