#include <array>

#include "sync/policy/sync_cost.h"

namespace rivulet::sync::policy {
namespace {

// The same compressor and keep ratio in every round: the baseline for other policies.

constexpr std::array keys{
    Key{.name = "compression.compressor",
        .type = KeyType::text,
        .text = "\"dense\"",
        .help = "with policy fixed: compressor of the contributions"},
    Key{.name = "compression.keep",
        .text = "0.01",
        .help = "with policy fixed: share of the parameters that a device sends in a round",
        .least = 0,
        .most = 1,
        .above = true},
    Key{.name = "compression.momentum",
        .type = KeyType::text,
        .text = "\"own\"",
        .help = "with policy fixed and sgd: owner of the momentum: own = each device, for elements not yet "
                "sent; group = the group, for all elements",
        .choices = "own | group"},
};

/// If the group keeps the momentum, parameters that are not sent lose theirs.
bool contributes_deltas(const PolicyConfig& config) {
  const CompressorEntry* small = compressor_named(setting(config, keys[0].name).text);
  return small != nullptr && small->kind() == SlotKind::entries && config.momentum_adds_up &&
         setting(config, keys[2].name).text == "own";
}

const std::string& compressor(const Settings& settings) {
  return settings.text(keys[0].name);
}

void propose(const Inputs& inputs, std::span<double>, RoundPlan& plan) {
  compress_with(inputs.config, setting(inputs.config, keys[0].name).text,
                setting(inputs.config, keys[1].name).number, plan.next);
}

}  // namespace

extern const ControllerEntry compression_fixed;
const ControllerEntry compression_fixed{.role = Role::compression,
                                        .name = "fixed",
                                        .help = "fixed compressor and keep ratio",
                                        .propose = &propose,
                                        .keys = keys,
                                        .contributes_deltas = &contributes_deltas,
                                        .compressor = &compressor};

}  // namespace rivulet::sync::policy
