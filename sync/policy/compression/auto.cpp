#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

// Sends the share of the parameters that policy auto of when has chosen; without one, all of them.

void propose(const Inputs& inputs, std::span<double>, RoundPlan& plan) {
  if (plan.next.keep_ratio >= 1) return;
  const ContributionShape shape = shape_of(inputs.config);
  for (const CompressorEntry* entry : builtin_compressors()) {
    if (entry->name != "topk") continue;
    plan.next.compressor = entry->name;
    plan.next.payload_bytes =
        entry->slot_bytes(shape, plan.next.keep_ratio, compressor_settings(inputs.config)) +
        shape.buffer_bytes();
  }
}

}  // namespace

extern const ControllerEntry compression_auto;
const ControllerEntry compression_auto{.role = Role::compression,
                                       .name = "auto",
                                       .help = "topk of the share that sync.policy auto finds; else dense",
                                       .propose = &propose};

}  // namespace rivulet::sync::policy
