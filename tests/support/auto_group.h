#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "core/rng.h"
#include "runtime/config/config.h"
#include "sync/coding/sketch.h"
#include "sync/controllers/budget.h"
#include "sync/policy/arbiter.h"
#include "sync/policy/sync_cost.h"
#include "tests/support/members.h"

/// A group with the policy "auto" in a computed world: formulas give the time of a step, its bytes, and the
/// time that the link needs for what a device sends.
namespace rivulet::testing {

using namespace sync;
using namespace sync::policy;

struct World {
  std::size_t devices = 4;
  double step_seconds = 0.01;
  double record_bytes = 50'000;  ///< of one step
  double bytes_per_second = 1e9;
  double latency = 0.0001;
  double loss = 1;
  double loss_falls = 1;       ///< down to this share, from one synchronization to the next
  double loss_spread = 0;      ///< of a device in one synchronization: this to the power of a normal variate
  double compute_seconds = 0;  ///< of one step
  double late_seconds = 0;     ///< by which the first device follows the others
  double signal = 1;           ///< of a step's gradient, squared; its noise is 1
  double signal_spread = 0;    ///< of one device, random
  double in_common = 1;        ///< share of the deltas that all devices have in common
  std::string budget = "1 of stream";
  std::vector<std::uint64_t> tensors{60'000, 1'000};
  std::vector<std::uint64_t> tensor_rows = {};
  double local_steps_max = 32;
  bool overlap = false;
};

/// A group whose plans follow from measurements in that world.
class Group {
 public:
  explicit Group(const World& world) : world_(world), rng_(5) {
    config_.sync_policy = config_.compression_policy = config_.collective = "auto";
    config_.batch_policy = "fixed";
    config_.momentum_adds_up = true;
    config_.tensors = world.tensors;
    config_.tensor_rows = world.tensor_rows;
    for (const auto tensor : world.tensors) config_.contribution_bytes += 4 * tensor;
    Settings settings = runtime::Config::default_settings();
    settings.set("sync.budget", world.budget);
    settings.set("sync.local_steps_max", static_cast<std::int64_t>(world.local_steps_max));
    settings.set("sync.overlap", std::string(world.overlap ? "auto" : "never"));
    config_.settings = settings_of(config_, settings);
    controllers_ = controllers_of(config_, builtin_controllers()).value();
    state_ = first_state(testing::members(world.devices), config_, controllers_);
  }

  /// One synchronization after the local steps of the last plan.
  const RoundPlan& agree() {
    const Schedule& entered = state_.last.next;
    table_.facts.assign(world_.devices, {});
    table_.sections.assign(world_.devices, {});
    const double steps = entered.steps();
    std::vector<float> common(Sketch::small);
    for (float& x : common) x = static_cast<float>(rng_.normal());
    for (std::uint32_t rank = 0; rank < world_.devices; ++rank) {
      Facts& f = table_.facts[rank];
      f.rank = rank;
      f.rows = static_cast<std::uint32_t>(64 * steps);
      f.rows_max = 1024;
      f.loss_sum =
          world_.loss * f.rows * (world_.loss_spread > 0 ? std::pow(world_.loss_spread, rng_.normal()) : 1);
      f.compute_seconds = world_.compute_seconds;
      f.measurements = {
          static_cast<float>(world_.record_bytes * steps),
          static_cast<float>(world_.step_seconds * steps + (rank == 0 ? world_.late_seconds : 0)),
          static_cast<float>(world_.step_seconds * steps + (rank == 0 ? world_.late_seconds : 0)),
          static_cast<float>(sent_),
          static_cast<float>(sent_ / world_.bytes_per_second + world_.latency),
          static_cast<float>(steps > 1
                                 ? world_.signal +
                                       (world_.signal_spread > 0 ? world_.signal_spread * rng_.normal() : 0)
                                 : 0),
          static_cast<float>(steps > 1 ? 1 : 0),
          0};  // no injected rows
      for (const float x : common)
        f.measurements.push_back(
            static_cast<float>(world_.in_common * x + (1 - world_.in_common) * rng_.normal()));
    }
    world_.loss *= world_.loss_falls;
    plan(table_, config_, controllers_, state_);
    const Schedule& next = state_.last.next;
    const double all = sync_bytes(next.way, world_.devices, 512);
    const double unseen = unseen_bytes(next.way, world_.devices);
    sent_ = (all - unseen) / wire_bytes(1e6, world_.devices) * 1e6;  // via the transport
    wire_ += all;
    if (budget_of(world_.budget)->is_hard()) wire_ += standing_bytes_per_second * world_.step_seconds * steps;
    rows_ += world_.record_bytes * steps;
    stepping_ += world_.step_seconds * steps;
    exchanging_ += sent_ / world_.bytes_per_second + world_.latency;
    return state_.last;
  }
  const RoundPlan& agree(int times) {
    for (int i = 1; i < times; ++i) agree();
    return agree();
  }
  void forget_sums() { wire_ = rows_ = stepping_ = exchanging_ = 0; }
  [[nodiscard]] double bytes_share() const { return wire_ / rows_; }
  [[nodiscard]] double time_share() const { return exchanging_ / (exchanging_ + stepping_); }
  [[nodiscard]] double last_exchange() const { return sent_ / world_.bytes_per_second + world_.latency; }
  World& world() { return world_; }
  FactsTable& table() { return table_; }
  PolicyState& state() { return state_; }
  [[nodiscard]] const PolicyConfig& config() const { return config_; }
  [[nodiscard]] const Controllers& controllers() const { return controllers_; }

 private:
  World world_;
  Rng rng_;
  PolicyConfig config_;
  Controllers controllers_;
  PolicyState state_;
  FactsTable table_;
  double sent_ = 0;
  double wire_ = 0, rows_ = 0, stepping_ = 0, exchanging_ = 0;
};

}  // namespace rivulet::testing
