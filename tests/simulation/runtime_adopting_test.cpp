// A device without the group's state gets it over any slow link, and never a different state.
#include <doctest/doctest.h>

#include "tests/support/counting_metrics.h"
#include "tests/support/group_support.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

constexpr double killed_at_s = 5;
constexpr double back_at_s = 9;

/// Two devices; the second is killed and returns without its disk. `metrics` has its measurements.
std::unique_ptr<runtime::SimulatedGroup> group_of_two(std::size_t columns, CountingMetrics& metrics) {
  auto job = linear_job(2);
  job.config.decode.shape = {static_cast<std::int64_t>(columns)};
  job.config.model.classes = 8;
  job.config.sync.on_peer_loss = "reform";
  job.config.train.average = 0;  // no further array
  runtime::SimulateOptions options;
  options.rates = {{{0, 20}}};
  options.profile = {std::chrono::milliseconds(2), 8000};
  options.link = {std::chrono::milliseconds(1), 12.5e6};
  options.faults = {{.at_s = killed_at_s, .kind = runtime::Fault::Kind::kill, .device = 1},
                    {.at_s = back_at_s, .kind = runtime::Fault::Kind::start, .device = 1}};
  static NullMetrics nowhere;
  runtime::SimulatedParts parts;
  parts.metrics = [&metrics](std::size_t device) -> MetricsSink& {
    if (device == 1) return metrics;
    return nowhere;
  };
  auto group = build_group(job, options, std::move(parts));
  run_to_end(*group, [&] { return group->seconds() > (killed_at_s + back_at_s) / 2; });
  REQUIRE(group->killed(1));
  REQUIRE(group->node(0).state().stamp.step > 10);
  REQUIRE(group->node(0).status().state.load() == runtime::NodeState::forming);
  REQUIRE(metrics["collective_operations_total/state/ok"] == 1);
  return group;
}

constexpr const char* taken = "collective_operations_total/state/ok";
constexpr const char* failed = "collective_operations_total/state/failed";

}  // namespace

TEST_CASE("Adopting: a state may take longer than a peer may be silent") {
  CountingMetrics metrics;
  auto group = group_of_two(8192, metrics);  // 65544 values and as many of momentum: 524 KB
  const std::uint64_t step = group->node(0).state().stamp.step;
  group->network().set_link({std::chrono::milliseconds(1), 0.1e6 / 8});
  const auto adopted = [&] {
    return group->seconds() > back_at_s + 0.1 && group->node(1).state().stamp.step >= step;
  };
  run_to_end(*group, adopted, 120);
  CHECK(group->seconds() > back_at_s + 41);  // 524 KB at 12.5 KB/s
  CHECK(group->seconds() < back_at_s + 45);
  // Whole gradients are too long for such a link: their messages would not arrive within the deadline.
  group->network().set_link({std::chrono::milliseconds(1), 12.5e6});
  run_to_end(*group, [&] { return group->node(1).state().stamp.step > step; }, 140);
  CHECK(metrics[taken] == 2);
  CHECK(metrics[failed] == 0);
}

TEST_CASE("Adopting: a state that is not the one the view starts from is not taken") {
  CountingMetrics metrics;
  auto group = group_of_two(8, metrics);
  const std::uint64_t step = group->node(0).state().stamp.step;
  SUBCASE("as it was announced it is taken") {
    run_to_end(*group, [&] { return group->seconds() > back_at_s + 2; });
    CHECK(group->node(1).state().stamp.step > step);
    CHECK(metrics[taken] == 2);
    CHECK(metrics[failed] == 0);
  }
  SUBCASE("its holder's memory has changed since it announced it") {
    group->node(0).own_state().model.parameters().host_bytes()[5] ^= std::byte{1};
    run_to_end(*group, [&] { return group->seconds() > back_at_s + 2; });
    CHECK(group->node(1).state().stamp.step == 0);
    CHECK(metrics[taken] == 1);
    CHECK(metrics[failed] >= 1);
  }
}
