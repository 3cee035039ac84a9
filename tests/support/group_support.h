#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/wiring/simulation.h"

namespace rivulet::testing {

/// A small job that needs no file, no LibTorch and no network: linear model, synthetic rows of 8 numbers.
runtime::LoadedConfig linear_job(std::uint32_t devices);
/// In place of the default, which goes by what it measures: rounds can be counted, and are the same twice.
/// The learning rate is what the configuration says, so that steps can be worked out by hand.
void agree_on_every_batch(runtime::Config& config);

/// Builds the group or fails the test with the reason.
std::unique_ptr<runtime::SimulatedGroup> build_group(const runtime::LoadedConfig& loaded,
                                                     const runtime::SimulateOptions& options,
                                                     runtime::SimulatedParts parts = {});

/// Until all have ended, or done() says so. If neither comes within `seconds` of the simulation, the test
/// fails with a sentence: a group whose limit is broken goes on for ever.
void run_to_end(
    runtime::SimulatedGroup& group, const std::function<bool()>& done = [] { return false; },
    double seconds = 1000);

/// Keeps every decision of one device in memory.
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
