#include "sync/transport/memory_transport.h"
#include "tests/conformance/walls_suite.h"

using namespace rivulet;
using namespace rivulet::testing;

TEST_CASE("Walls: over in-memory wires under a virtual clock") {
  walls_suite([](const WallsRun& run) { return run_simulated(run); });
}

TEST_CASE("Walls: over in-memory wires on real threads") {
  walls_suite([](const WallsRun& run) {
    const RealClock clock;
    sync::MemoryNetwork network;
    return run_on_threads(run, [&](std::size_t) { return network.connect_for(clock); });
  });
}
