#include <algorithm>
#include <array>

#include "sync/controllers/overlap.h"

namespace rivulet::sync::policy {
namespace {

// Local SGD (post-local SGD, Lin et al. 2020, without its dense beginning): the group averages deltas after N
// local steps, or T seconds.

constexpr std::array keys{
    Key{.name = "sync.local_steps",
        .type = KeyType::integer,
        .text = "10",
        .help = "with policy periodic: local steps per synchronization; 1 = every step",
        .least = 1,
        .most = 8000},
    Key{.name = "sync.own_time",
        .type = KeyType::duration,
        .text = "\"0s\"",
        .help = "with policy periodic: maximum time between synchronizations; 0s = no limit",
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
const ControllerEntry when_periodic{
    .role = Role::when,
    .name = "periodic",
    .help = "local steps on each device, with a synchronization every N steps or T seconds (local SGD)",
    .propose = &propose,
    .keys = keys,
    .contributes_deltas = &contributes_deltas,
    .plans_steps = true,
    .overlaps = &overlaps};

}  // namespace rivulet::sync::policy
