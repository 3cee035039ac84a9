#include <algorithm>
#include <array>
#include <cmath>

#include "sync/controllers/overlap.h"
#include "sync/policy/coherence.h"
#include "sync/published/gain.h"

namespace rivulet::sync::policy {
namespace {

// SelSync: devices make local steps until the gradients of one of them change.
//
//   E_k = smoothed |g_k|^2;   change_k = |E_k - its value one step before| / that value
//   a device whose change reaches delta requests a synchronization, and the group averages deltas
//
// delta = 0 is `every`. Local steps are limited, since an infinite delta would never end them. The published
// code averages parameters before the optimizer's step, so replicas differ afterwards; here deltas are
// averaged. In that code one request suffices, so synchronizations become more frequent in larger groups;
// here a quorum may be set. Counts only requests of this policy. A device that has made all its steps enters
// without a request.

constexpr std::array keys{
    Key{.name = "sync.selsync.delta",
        .text = "0.3",
        .help =
            "with policy selsync: relative change of a device's smoothed squared gradient norm at which it "
            "requests synchronization; 0: synchronization after every step",
        .least = 0,
        .most = 1e6},
    Key{.name = "sync.selsync.half_life",
        .text = "4",
        .help = "with policy selsync: half-life of the smoothed norm, in local steps; other values require a "
                "different delta",
        .least = 0,
        .most = 10'000,
        .above = true},
    Key{.name = "sync.selsync.quorum",
        .text = "0",
        .help = "with policy selsync: share of the devices that must request synchronization; 0: one device",
        .least = 0,
        .most = 1},
    Key{.name = "sync.selsync.steps_max",
        .type = KeyType::integer,
        .text = "100",
        .help = "with policy selsync: maximum local steps between synchronizations",
        .least = 1,
        .most = 8000},
    Key{.name = "sync.selsync.target",
        .text = "0",
        .help = "with policy selsync: target share of steps without synchronization (LSSR), reached by "
                "adjusting delta; 0: fixed delta",
        .least = 0,
        .most = 0.999},
};

constexpr std::array measurements{
    FactField{"norm_change",
              "maximum relative change of its smoothed squared gradient norm since the last synchronization"},
};

enum Place : std::size_t { steps_at, syncs_at, own_share_at, delta_at, requests_at, memory_size };
constexpr std::array figures{
    Figure{"own_share", "share of steps without synchronization (LSSR)", own_share_at},
    Figure{"delta", "relative change of the gradient norm at which a device requests synchronization",
           delta_at},
    Figure{"requests", "number of devices that requested the last synchronization", requests_at},
};
constexpr double follow =
    0.1;  ///< correction per synchronization, as a share of the difference to the target
constexpr double least_delta = 1e-6;

double number(const Inputs& inputs, std::size_t key) {
  return setting(inputs.config, keys.at(key).name).number;
}

std::size_t callers(const Inputs& inputs, double delta) {
  return static_cast<std::size_t>(std::ranges::count_if(
      inputs.table.facts, [&](const Facts& f) { return finite(f.measurements[inputs.measured]) >= delta; }));
}

/// Maximum local steps of a device since the last synchronization.
double steps_of(const Inputs& inputs) {
  std::uint32_t most = 0;
  for (std::size_t rank = 0; rank < inputs.table.size(); ++rank)
    if (inputs.table.facts[rank].rows > 0)
      most = std::max(most, steps_behind(inputs.table.facts[rank], inputs.table.sections[rank]));
  return most;
}

void count(const Inputs& inputs, double steps, std::span<double> memory) {
  memory[steps_at] += steps;
  memory[syncs_at] += 1;
  memory[own_share_at] = 1 - memory[syncs_at] / memory[steps_at];
  const double target = number(inputs, 4);
  if (target > 0 && !inputs.settling)
    memory[delta_at] = std::max(least_delta, memory[delta_at] * (1 + follow * (target - (1 - 1 / steps))));
}

/// delta is a slow loop if it follows a target. Its changes are small, so no other loop waits for them.
double half_life(const PolicyConfig& config) {
  return setting(config, keys[4].name).number > 0 ? half_life_of_mean(follow) : 0;
}

bool contributes_deltas(const PolicyConfig& config) {
  return setting(config, keys[0].name).number > 0;
}

void propose(const Inputs& inputs, std::span<double> memory, RoundPlan& plan) {
  const bool follows = number(inputs, 4) > 0 && number(inputs, 0) > 0;
  if (memory[delta_at] == 0 || !follows) memory[delta_at] = number(inputs, 0);
  const double delta = memory[delta_at];
  if (delta == 0) plan.next.local.reset();  // saves the request: all enter after every step
  if (plan.next.local)
    plan.next.local = LocalSchedule{.steps = static_cast<std::uint32_t>(number(inputs, 3)),
                                    .early = EarlySync{delta, HalfLife(number(inputs, 1)).weight()}};
  const double steps = steps_of(inputs);
  memory[requests_at] = static_cast<double>(callers(inputs, delta));
  const double wanted =
      std::max(1.0, std::ceil(number(inputs, 2) * static_cast<double>(inputs.table.size())));
  const bool complete = steps >= plan.next.steps() || plan.now.mode != Mode::delta || !inputs.entered.local;
  if (steps > 0 && !complete && memory[requests_at] > 0 && memory[requests_at] < wanted) {
    plan.now.mode = Mode::defer;
    plan.why = std::to_string(std::lround(memory[requests_at])) + " devices request synchronization, " +
               std::to_string(std::lround(wanted)) + " are needed";
  } else if (steps > 0) {
    count(inputs, steps, memory);
    plan.why = (memory[requests_at] > 0
                    ? std::to_string(std::lround(memory[requests_at])) + " devices requested synchronization"
                    : std::string("no device requested synchronization")) +
               " in " + std::to_string(std::lround(steps)) + " steps";
  }
  if (plan.next.local) plan.next.local->early->change = memory[delta_at];
  keep_finite(memory);
}

}  // namespace

extern const ControllerEntry when_selsync;
const ControllerEntry when_selsync{.role = Role::when,
                                   .name = "selsync",
                                   .help = "when the norm of a device's gradients changes (SelSync)",
                                   .propose = &propose,
                                   .keys = keys,
                                   .fact_fields = measurements,
                                   .memory = memory_size,
                                   .figures = figures,
                                   .slow = {&half_life},
                                   .contributes_deltas = &contributes_deltas};

}  // namespace rivulet::sync::policy
