#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/settings.h"
#include "sync/coding/gains.h"
#include "sync/compressor/compressor.h"
#include "sync/policy/arbiter.h"
#include "tests/support/members.h"

/// A group under a published compression gate, with given gains.
namespace rivulet::testing {

using namespace sync;
using namespace sync::policy;

/// A group in mode gradients under one compression policy, round by round.
class Gated {
 public:
  Gated(std::string policy, std::size_t devices, std::size_t parameters) : devices_(devices) {
    config.sync_policy = "every";
    config.batch_policy = "fixed";
    config.compression_policy = std::move(policy);
    config.collective = "gather";
    config.contribution_bytes = 4 * parameters;
    config.tensors = {parameters};
    for (const auto* entry : builtin_controllers())
      for (const Key& key : entry->keys) set_default(key);
    for (const auto* entry : builtin_compressors())
      for (const Key& key : entry->keys) set_default(key);
  }

  /// Called before the first round and after changes of settings.
  void begin() {
    config.settings = settings_of(config, settings);
    controllers = controllers_of(config, builtin_controllers()).value();
    if (state.last.next.rows.empty()) state = first_state(testing::members(devices_), config, controllers);
  }
  /// One round with these gains of the devices' contributions.
  const RoundPlan& step(const std::vector<Gains>& all) {
    begin();
    table = {};
    table.facts.resize(devices_);
    table.sections.resize(devices_);
    for (std::size_t i = 0; i < devices_; ++i) {
      Facts& f = table.facts[i];
      f.rows = i == 0 ? rows_of_first.value_or(rows) : rows;
      f.flags = i == 0 ? flags : 0;
      f.wait_seconds = i == 0 ? wait_of_first : 0;
      f.interval.rows_trained = f.rows;
      if (steps > 1) table.sections[i].step_rows.assign(steps, rows / steps);
      f.rows_max = 4096;
      f.agreed_rows = agreed_rows;
      f.compute_seconds = 0.01F;
      f.sync_seconds = static_cast<float>(sync_seconds);
      f.measurements.assign(all[i].shares.begin(), all[i].shares.end());
      f.measurements.push_back(static_cast<float>(all[i].contribution_norm));
      f.measurements.push_back(static_cast<float>(all[i].gradient_norm));
      // Measurements requested by some controllers: three of moo, four of a learning collective.
      for (const double more : {0.1, sent, sync_seconds, sync_seconds})
        f.measurements.push_back(static_cast<float>(more));
      f.measurements.resize(measurements_of(controllers));
    }
    plan(table, config, controllers, state);
    return state.last;
  }
  const RoundPlan& step(const Gains& alike) { return step(std::vector<Gains>(devices_, alike)); }

  PolicyConfig config;
  Settings settings;
  Controllers controllers;
  PolicyState state;
  FactsTable table;  ///< of the last round
  std::uint32_t rows = 64;
  std::uint32_t steps = 1;  ///< so far
  std::optional<std::uint32_t> rows_of_first;
  std::uint32_t flags = 0;  ///< of the first device
  float wait_of_first = 0;
  double sync_seconds = 0.1;
  double sent = 1000;
  std::uint64_t agreed_rows = 0;

 private:
  void set_default(const Key& key) {
    if (key.type == KeyType::text)
      settings.set(std::string(key.name), std::string(key.text.substr(1, key.text.size() - 2)));
    else if (key.type == KeyType::integer)
      settings.set(std::string(key.name), std::int64_t{std::stoll(std::string(key.text))});
    else if (key.type == KeyType::boolean)
      settings.set(std::string(key.name), key.text == "true");
    else if (key.type == KeyType::duration)
      settings.set(std::string(key.name), Duration(0));
    else
      settings.set(std::string(key.name), std::stod(std::string(key.text)));
  }
  std::size_t devices_;
};

/// The same share of the squared norm at each keep ratio above `from`.
inline Gains flat(double share) {
  Gains gains;
  gains.shares.fill(static_cast<float>(share));
  gains.contribution_norm = gains.gradient_norm = 1;
  return gains;
}

}  // namespace rivulet::testing
