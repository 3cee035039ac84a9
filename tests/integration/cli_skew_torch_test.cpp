// Ten devices with one digit each: the purpose of injected rows.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/device_group.h"
#include "tests/support/places.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

nlohmann::json one_label_each(const std::string& inject) {
  const std::string digits = source_path("examples/mnist/data");
  const auto run = run_rivulet({"simulate",   "--data",
                                digits,       "--held-out",
                                digits,       "--devices",
                                "10",         "--rates",
                                "20000",      "--labels-per-device",
                                "1",          "--stop-after",
                                "rows=24000", "--json",
                                "--set",      "batch.policy=fixed",
                                "--set",      "batch.rows=20",
                                "--set",      "sync.policy=periodic",
                                "--set",      "sync.local_steps=4",
                                "--set",      "compression.policy=none",
                                "--set",      "train.lr_scaling.rule=none",
                                "--set",      "train.optimizer.lr=0.03",
                                "--set",      "inject.policy=" + inject},
                               120s);
  INFO(run.errors);
  REQUIRE(run.status.code == 0);
  return nlohmann::json::parse(last_line(run.output));
}

}  // namespace

TEST_CASE("Skew: with a few rows of all others devices of one label learn on their own, else they do not") {
  const auto alone = one_label_each("none");
  const auto helped = one_label_each("auto");
  const double without = alone["accuracy"].get<double>();
  const double with = helped["accuracy"].get<double>();
  CHECK(with > without + 0.1);
  CHECK(with > 0.75);
}
