#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/group_support.h"
#include "tests/support/real_node.h"

/// Runs a simulated group to its end and collects results.
namespace rivulet::testing {

using namespace runtime;

struct Outcome {
  std::vector<std::vector<float>> parameters;  ///< by device
  std::vector<std::vector<std::byte>> momentum;
  std::vector<RecordedRound> rounds;                        ///< as recorded by device 0
  std::vector<sync::policy::ControllerMemory> controllers;  ///< final memory of the controllers
  std::uint64_t step = 0;
  std::uint64_t rows = 0;
  std::uint64_t views = 0;
  double seconds = 0;
};

inline SimulateOptions fast(std::uint64_t rounds) {
  SimulateOptions options;
  options.rates = {{{0, 5000}}};
  options.profile = {std::chrono::milliseconds(2), 8000};
  options.link = {std::chrono::milliseconds(1), 12.5e6};
  options.stop_after.rounds = rounds;
  return options;
}

inline Outcome run(const LoadedConfig& job, const SimulateOptions& options, double seconds = 1000) {
  Outcome out;
  SimulatedParts parts;
  parts.decisions = [&](std::size_t device) -> std::unique_ptr<DecisionLog> {
    if (device == 0) return std::make_unique<RecordingDecisions>(out.rounds);
    return make_null_decision_log();
  };
  auto group = build_group(job, options, std::move(parts));
  run_to_end(*group, [] { return false; }, seconds);
  for (std::size_t i = 0; i < group->size(); ++i) {
    const auto& model = group->node(i).state().model;
    const auto p = model.parameters().as<float>();
    out.parameters.emplace_back(p.begin(), p.end());
    const auto m = model.optimizer_array(0).host_bytes();
    out.momentum.emplace_back(m.begin(), m.end());
  }
  out.controllers = group->node(0).state().controllers;
  out.step = group->node(0).state().stamp.step;
  out.rows = group->node(0).state().rows;
  out.views = group->node(0).state().stamp.lineage;
  out.seconds = group->seconds();
  return out;
}

inline std::size_t rounds_of(const Outcome& outcome, sync::policy::Mode mode) {
  return static_cast<std::size_t>(
      std::ranges::count_if(outcome.rounds, [&](const auto& r) { return r.plan.now.mode == mode; }));
}

}  // namespace rivulet::testing
