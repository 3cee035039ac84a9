// Steps of single devices that a lost view takes with it: their rows are trained once, from where the group
// stands.
#include <doctest/doctest.h>

#include "tests/conformance/walls_suite.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

/// What two devices ended with after ten rounds that add up movements.
struct Outcome {
  std::vector<std::vector<float>> parameters;  ///< by device
  std::vector<std::map<PartitionId, runtime::PartitionProgress>> partitions;
  std::vector<std::uint64_t> steps, views, rows;
};

/// `lose`: what the devices tell each other in their second such round is lost in both directions.
Outcome run(bool lose) {
  auto walls = walls_run("local_local_parameters", 2, 10);
  walls.loaded.config.sync.on_peer_loss = "reform";
  const PartsCatalog catalog;
  runtime::SimulatedParts parts;
  parts.apart = true;  // each tells each, so that something can be lost
  parts.catalog = catalog.catalog();
  parts.source = [&](std::size_t device, const Clock& clock) {
    return linear_source(walls.loaded.config, device, 4000, clock);
  };
  runtime::SimulateOptions options;
  options.stop_after = walls.stop_after;
  options.link = {std::chrono::milliseconds(1), 1e8};
  auto group = build_group(walls.loaded, options, std::move(parts));
  bool lost[2] = {!lose, !lose};
  group->network().set_loss([&](std::uint32_t from, std::uint32_t, sync::Lane lane, std::uint64_t index) {
    const bool now = lane == sync::Lane::payload && index == 1 && !lost[from];
    lost[from] = lost[from] || now;
    return now;
  });
  run_to_end(*group);
  CHECK((lost[0] && lost[1]));
  Outcome out;
  for (std::size_t i = 0; i < group->size(); ++i) {
    auto& node = group->node(i);
    CHECK_FALSE(node.worker().ending().error);
    const auto numbers = node.state().model.parameters().as<float>();
    out.parameters.emplace_back(numbers.begin(), numbers.end());
    out.partitions.push_back(node.state().partitions);
    out.steps.push_back(node.state().stamp.step);
    out.views.push_back(node.status().view.load());
    out.rows.push_back(node.state().rows);
  }
  return out;
}

}  // namespace

TEST_CASE(
    "Local steps: a view that is lost while movements are added up changes nothing of what is learned") {
  const Outcome whole = run(false);
  const Outcome broken = run(true);
  CHECK(whole.views == std::vector<std::uint64_t>{1, 1});
  CHECK(broken.views == std::vector<std::uint64_t>{2, 2});
  CHECK(whole.steps == std::vector<std::uint64_t>{10, 10});
  CHECK(broken.steps == whole.steps);
  CHECK(whole.rows == std::vector<std::uint64_t>(2, 10 * 2 * 24));
  CHECK(broken.rows == whole.rows);
  CHECK(broken.partitions == whole.partitions);
  CHECK(whole.parameters[1] == whole.parameters[0]);
  CHECK(broken.parameters == whole.parameters);
}
