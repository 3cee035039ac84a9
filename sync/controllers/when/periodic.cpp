#include <algorithm>
#include <array>

#include "sync/controllers/overlap.h"

namespace rivulet::sync::policy {
namespace {

// Local steps (post-local SGD, Lin et al. 2020, without its dense beginning): the group agrees about how far
// each device has moved after N steps of its own, or T seconds.

constexpr std::array keys{
    Key{.name = "sync.own_steps",
        .type = KeyType::integer,
        .text = "10",
        .help = "of policy periodic: steps that each device makes before the group agrees; 1 = every",
        .least = 1,
        .most = 8000},
    Key{.name = "sync.own_time",
        .type = KeyType::duration,
        .text = "\"0s\"",
        .help = "of policy periodic: ... or so long, whatever comes first; 0s = only steps count",
        .least = 0,
        .most = 3600},
    overlap_key,
};

bool contributes_deltas(const PolicyConfig& config) {
  return setting(config, keys[0].name).number > 1;
}

bool overlaps(const PolicyConfig& config) {
  return contributes_deltas(config) && setting(config, overlap_key.name).text == overlap_always;
}

void propose(const Inputs& inputs, std::span<double>, RoundPlan& plan) {
  if (!plan.next.local) return;
  plan.next.local->steps = static_cast<std::uint32_t>(setting(inputs.config, keys[0].name).number);
  plan.next.local->time = from_seconds(setting(inputs.config, keys[1].name).number);
  plan.next.local->overlap = overlaps(inputs.config);
}

}  // namespace

extern const ControllerEntry when_periodic;
const ControllerEntry when_periodic{.role = Role::when,
                                    .name = "periodic",
                                    .help = "devices step on their own and agree every N steps or seconds",
                                    .propose = &propose,
                                    .keys = keys,
                                    .contributes_deltas = &contributes_deltas,
                                    .plans_steps = true,
                                    .overlaps = &overlaps};

}  // namespace rivulet::sync::policy
