#include <array>

#include "sync/compressor/compressor.h"
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

// The same compressor and share in every round: what other policies are compared with.

constexpr std::array keys{
    Key{.name = "compression.compressor",
        .type = KeyType::text,
        .text = "\"dense\"",
        .help = "of policy fixed: how contributions are made small"},
    Key{.name = "compression.keep",
        .text = "0.01",
        .help = "of policy fixed: share of the parameters that a device sends in a round",
        .least = 0,
        .most = 1,
        .above = true},
    Key{.name = "compression.momentum",
        .type = KeyType::text,
        .text = "\"own\"",
        .help =
            "of policy fixed with sgd: each device keeps the momentum of what it has not sent, or the group "
            "all of it",
        .choices = "own | group"},
};

void propose(const Inputs& inputs, std::span<double>, RoundPlan& plan) {
  const std::string& name = setting(inputs.config, keys[0].name).text;
  for (const CompressorEntry* entry : builtin_compressors()) {
    if (entry->name != name) continue;
    plan.next.compressor = name;
    plan.next.keep_ratio = setting(inputs.config, keys[1].name).number;
    const ContributionShape shape = shape_of(inputs.config);
    plan.next.payload_bytes =
        entry->slot_bytes(shape, plan.next.keep_ratio, compressor_settings(inputs.config)) +
        shape.buffer_bytes();
  }
}

}  // namespace

extern const ControllerEntry compression_fixed;
const ControllerEntry compression_fixed{.role = Role::compression,
                                        .name = "fixed",
                                        .help = "the same compressor and share in every round",
                                        .propose = &propose,
                                        .keys = keys};

}  // namespace rivulet::sync::policy
