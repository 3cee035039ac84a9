#include <algorithm>
#include <array>
#include <cmath>

#include "sync/controllers/overlap.h"
#include "sync/policy/coherence.h"
#include "sync/published/gain.h"

namespace rivulet::sync::policy {
namespace {

// SelSync: devices step on their own until the gradients of one of them change.
//
//   E_k = smoothed |g_k|^2;   change_k = |E_k - its value a step before| / that value
//   a device whose change reaches delta calls the others, and all agree on how far they have come
//
// delta = 0 is `every`, an infinite one are local steps for ever: so there is a most. The published code
// averages parameters before the step of the optimizer, so replicas differ behind it; here movements are what
// is averaged. One call suffices there, so the more devices the more calls: here a quorum may be asked for.
// Nobody's calls but those of this policy are counted: who has made all its steps comes without one.

constexpr std::array keys{
    Key{.name = "sync.selsync.delta",
        .text = "0.3",
        .help = "of policy selsync: relative change of the smoothed squared norm of a device's gradients "
                "from which it "
                "calls the others; 0: after every step",
        .least = 0,
        .most = 1e6},
    Key{.name = "sync.selsync.half_life",
        .text = "4",
        .help = "of policy selsync: own steps after which a norm counts half; delta goes with it",
        .least = 0,
        .most = 10'000,
        .above = true},
    Key{.name = "sync.selsync.quorum",
        .text = "0",
        .help =
            "of policy selsync: part of the devices that must call before the group agrees; 0: one is enough",
        .least = 0,
        .most = 1},
    Key{.name = "sync.selsync.steps_max",
        .type = KeyType::integer,
        .text = "100",
        .help = "of policy selsync: own steps after which the group agrees, called or not",
        .least = 1,
        .most = 8000},
    Key{.name = "sync.selsync.target",
        .text = "0",
        .help = "of policy selsync: share of the steps that should stay local (LSSR): "
                "delta "
                "follows; 0: it stays",
        .least = 0,
        .most = 0.999},
};

constexpr std::array measurements{
    FactField{"norm_change", "largest since the last agreement, of its smoothed squared gradient norm"},
};

enum Place : std::size_t { steps_at, agreements_at, own_share_at, delta_at, calls_at, memory_size };
constexpr std::array figures{
    Figure{"own_share", "share of steps that stayed local: LSSR", own_share_at},
    Figure{"delta", "change from which a device calls", delta_at},
    Figure{"calls", "devices that called for the last agreement", calls_at},
};
constexpr double follow = 0.1;  ///< of the difference to the target, in each agreement
constexpr double least_delta = 1e-6;

double number(const Inputs& inputs, std::size_t key) {
  return setting(inputs.config, keys.at(key).name).number;
}

std::size_t callers(const Inputs& inputs, double delta) {
  return static_cast<std::size_t>(std::ranges::count_if(
      inputs.table.facts, [&](const Facts& f) { return finite(f.measurements[inputs.measured]) >= delta; }));
}

/// Own steps behind what the group agrees on, of the device that made most.
double steps_of(const Inputs& inputs) {
  std::uint32_t most = 0;
  for (std::size_t rank = 0; rank < inputs.table.size(); ++rank)
    if (inputs.table.facts[rank].rows > 0)
      most = std::max(most, steps_behind(inputs.table.facts[rank], inputs.table.sections[rank]));
  return most;
}

void count(const Inputs& inputs, double steps, std::span<double> memory) {
  memory[steps_at] += steps;
  memory[agreements_at] += 1;
  memory[own_share_at] = 1 - memory[agreements_at] / memory[steps_at];
  const double target = number(inputs, 4);
  if (target > 0 && !inputs.settling)
    memory[delta_at] = std::max(least_delta, memory[delta_at] * (1 + follow * (target - (1 - 1 / steps))));
}

/// Where delta follows a target it is a slow loop; its changes are small, and nobody waits for them.
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
  if (delta == 0) plan.next.local.reset();  // what a call would cost is saved: all come after every step
  if (plan.next.local)
    plan.next.local = LocalSchedule{.steps = static_cast<std::uint32_t>(number(inputs, 3)),
                                    .early = EarlyCall{delta, HalfLife(number(inputs, 1)).weight()}};
  const double steps = steps_of(inputs);
  memory[calls_at] = static_cast<double>(callers(inputs, delta));
  const double wanted =
      std::max(1.0, std::ceil(number(inputs, 2) * static_cast<double>(inputs.table.size())));
  const bool complete = steps >= plan.next.steps() || plan.now.mode != Mode::delta || !inputs.entered.local;
  if (steps > 0 && !complete && memory[calls_at] > 0 && memory[calls_at] < wanted) {
    plan.now.mode = Mode::hold;
    plan.why = std::to_string(std::lround(memory[calls_at])) + " devices call, " +
               std::to_string(std::lround(wanted)) + " are needed";
  } else if (steps > 0) {
    count(inputs, steps, memory);
    plan.why = (memory[calls_at] > 0 ? std::to_string(std::lround(memory[calls_at])) + " devices have called"
                                     : std::string("nobody has called")) +
               " in " + std::to_string(std::lround(steps)) + " steps";
  }
  if (plan.next.local) plan.next.local->early->change = memory[delta_at];
  keep_finite(memory);
}

}  // namespace

extern const ControllerEntry when_selsync;
const ControllerEntry when_selsync{.role = Role::when,
                                   .name = "selsync",
                                   .help = "when the gradients of a device change (SelSync)",
                                   .propose = &propose,
                                   .keys = keys,
                                   .fact_fields = measurements,
                                   .memory = memory_size,
                                   .figures = figures,
                                   .slow = {&half_life},
                                   .contributes_deltas = &contributes_deltas};

}  // namespace rivulet::sync::policy
