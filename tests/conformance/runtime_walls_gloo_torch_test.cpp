#include "sync/transport/gloo_transport.h"
#include "tests/conformance/walls_suite.h"

using namespace rivulet;
using namespace rivulet::testing;

TEST_CASE("Walls: over Gloo on real threads") {
  walls_suite([](const WallsRun& run) {
    const RealClock clock;
    return run_on_threads(run, [&](std::size_t) {
      sync::GlooConfig config;
      auto connect = sync::make_gloo_connect(config, clock);
      REQUIRE(connect);
      return std::move(connect).value();
    });
  });
}
