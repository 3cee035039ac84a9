#include "sync/policy/agreement_cost.h"

namespace rivulet::sync::policy {
namespace {

// Sends the share of the parameters that policy auto of when has chosen; without one, all of them.

void propose(const Inputs& inputs, std::span<double>, RoundPlan& plan) {
  if (plan.next.keep_ratio < 1) compress_with(inputs.config, "topk", plan.next.keep_ratio, plan.next);
}

}  // namespace

extern const ControllerEntry compression_auto;
const ControllerEntry compression_auto{.role = Role::compression,
                                       .name = "auto",
                                       .help = "topk of the share that sync.policy auto finds; else dense",
                                       .propose = &propose};

}  // namespace rivulet::sync::policy
