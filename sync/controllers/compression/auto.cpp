#include "sync/policy/agreement_cost.h"

namespace rivulet::sync::policy {
namespace {

// Sends the share of the parameters that policy auto of when has chosen, or the thin matrices; without a
// choice, all of them.

void propose(const Inputs& inputs, std::span<double>, RoundPlan& plan) {
  const bool thin = plan.next.compressor == "low_rank";
  if (plan.next.keep_ratio < 1)
    compress_with(inputs.config, thin ? "low_rank" : "topk", plan.next.keep_ratio, plan.next);
}

}  // namespace

extern const ControllerEntry compression_auto;
const ControllerEntry compression_auto{
    .role = Role::compression,
    .name = "auto",
    .help = "topk of the share that sync.policy auto finds, or low_rank; else dense",
    .propose = &propose};

}  // namespace rivulet::sync::policy
