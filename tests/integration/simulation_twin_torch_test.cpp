// A simulated group is as fast as a real one with the same links and devices.
#include <doctest/doctest.h>

#include "tests/support/twin_runs.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

TEST_CASE("Simulation: four devices on links of 10 Mbit/s train as fast as processes do, within 30 %") {
  auto made = TwinRuns::create(4);
  REQUIRE_MESSAGE(made, made.error().message);
  TwinRuns& runs = *made.value();
  TwinScenario scenario;
  scenario.settings = {"batch.policy=fixed", "batch.rows=16"};
  scenario.profiles = {{20ms, 1600}};
  const auto simulated = runs.virtually(scenario);
  REQUIRE_MESSAGE(simulated, simulated.error().message);
  const auto real = runs.really(scenario);
  REQUIRE_MESSAGE(real, real.error().message);
  // The same rounds of the same rows, limited by the link.
  CHECK(real.value().rounds == 20);
  CHECK(simulated.value().rounds == 20);
  CHECK(simulated.value().rows == real.value().rows);
  CHECK(real.value().rounds_per_s() < 2.5);
  const double ratio = simulated.value().rounds_per_s() / real.value().rounds_per_s();
  CAPTURE(real.value().rounds_per_s());
  CHECK(ratio > 0.7);
  CHECK(ratio < 1.3);
}
