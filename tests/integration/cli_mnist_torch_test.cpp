// The main use case: four devices train LeNet-5 on MNIST from a broker, as in scripts/demo.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/clock.h"
#include "tests/support/device_group.h"
#include "tests/support/effort.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

TEST_CASE(
    "Demo as it is: 97 % of the held-out images, measured on a state that all devices hold to the bit") {
  const auto first = seed_or(1);
  for (int i = 0; i < repetitions(1, 3); ++i) {
    const auto seed = first + static_cast<std::uint64_t>(i);
    INFO("seed ", seed);
    const RealClock clock;
    const auto began = clock.now();
    const auto demo = run_rivulet({"demo", "--seed", std::to_string(seed), "--json"}, 120s);
    INFO(demo.errors);
    REQUIRE(demo.status.code == 0);
    const auto summary = nlohmann::json::parse(last_line(demo.output));
    CHECK(summary["accuracy"].get<double>() >= 0.97);
    CHECK(summary["parameters_equal"] == true);
    const int rounds = summary["rounds"].get<int>();
    CHECK(rounds > 0);
    CHECK(summary["digests_compared"].get<int>() > 2 * rounds);  // by all four, except for the last
    CHECK(summary["time_to_accuracy_s"].contains("0.90"));
    REQUIRE(summary["devices"].size() == 4);
    for (const auto& device : summary["devices"]) CHECK(device["digest"] == summary["devices"][0]["digest"]);
    report_figure("demo_accuracy", summary["accuracy"].get<double>(), "");
    report_figure("demo_seconds", to_seconds(clock.now() - began), "s");
  }
}
