#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/wiring/simulation.h"

namespace rivulet::testing {

/// A small job without files, LibTorch or network: linear model, synthetic rows of 8 values.
runtime::LoadedConfig linear_job(std::uint32_t devices);
/// Replaces the default, which depends on measurements: rounds are predictable and reproducible. The learning
/// rate is constant, so that tests can compute steps by hand.
void agree_on_every_batch(runtime::Config& config);

/// Builds the group, or fails the test with the reason.
std::unique_ptr<runtime::SimulatedGroup> build_group(const runtime::LoadedConfig& loaded,
                                                     const runtime::SimulateOptions& options,
                                                     runtime::SimulatedParts parts = {});

/// Runs until all devices have ended or done() returns true. Fails the test after `seconds` of simulated
/// time: a group with a broken limit never ends.
void run_to_end(
    runtime::SimulatedGroup& group, const std::function<bool()>& done = [] { return false; },
    double seconds = 1000);

/// Keeps all decisions of one device in memory.
struct RecordedRound {
  std::uint64_t round;
  sync::FactsTable table;
  sync::policy::RoundPlan plan;
};
class RecordingDecisions final : public runtime::DecisionLog {
 public:
  explicit RecordingDecisions(std::vector<RecordedRound>& into) : into_(into) {}
  void write(std::uint64_t, std::uint64_t round, const sync::FactsTable& table,
             const sync::policy::RoundPlan& plan) override {
    into_.push_back({round, table, plan});
  }

 private:
  std::vector<RecordedRound>& into_;
};

}  // namespace rivulet::testing
