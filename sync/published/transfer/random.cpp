#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/rng.h"
#include "sync/controllers/injection.h"

namespace rivulet::sync::policy {
namespace {

// ScaDLES: in each round, randomly drawn devices send a part of their rows to all others.

constexpr std::array keys{
    Key{.name = "inject.random.devices",
        .text = "0.5",
        .help = "with policy random: share of the devices that send injected rows in a round (alpha)",
        .least = 0,
        .most = 1},
    Key{.name = "inject.random.share",
        .text = "0.1",
        .help = "with policy random: share of its rows that each of these devices sends (beta)",
        .least = 0,
        .most = 1},
    Key{.name = "inject.random.seed",
        .type = KeyType::integer,
        .text = "1",
        .help = "with policy random: seed for drawing these devices",
        .least = 0,
        .most = 9007199254740992.0},
};

void propose(const Inputs& inputs, std::span<double> /*memory*/, RoundPlan& plan) {
  const std::size_t n = inputs.table.size();
  const double share = setting(inputs.config, keys[1].name).number;
  const auto chosen = static_cast<std::size_t>(
      std::ceil(setting(inputs.config, keys[0].name).number * static_cast<double>(n)));
  if (n < 2 || chosen == 0 || share == 0) return;
  // Derived from the step of the group, so a new view continues the sequence.
  Rng rng = Rng::derive(static_cast<std::uint64_t>(setting(inputs.config, keys[2].name).number), "inject",
                        inputs.table.facts[0].step);
  std::vector<std::size_t> ranks(n);
  std::iota(ranks.begin(), ranks.end(), std::size_t{0});
  std::vector<bool> sends(n);
  for (std::size_t i = 0; i < std::min(chosen, n); ++i) {
    std::swap(ranks[i], ranks[i + rng.below(n - i)]);
    sends[ranks[i]] = true;
  }
  const double injected = share * static_cast<double>(std::min(chosen, n));
  inject_rows(inputs.config, sends, share, injected, plan.next);
  plan.why = std::to_string(std::min(chosen, n)) + " devices send injected rows";
}

}  // namespace

extern const ControllerEntry transfer_random;
const ControllerEntry transfer_random{
    .role = Role::transfer,
    .name = "random",
    .help = "in each round, randomly drawn devices send injected rows to all others (ScaDLES)",
    .propose = &propose,
    .keys = keys};

}  // namespace rivulet::sync::policy
