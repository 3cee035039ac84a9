#include "sync/policy/agreement_cost.h"

namespace rivulet::sync::policy {
namespace {

// Gather takes two phases and sends (N - 1) payloads, sum and two_sided take more phases and send about
// 2 (N - 1) / N.
void propose(const Inputs& inputs, std::span<double>, RoundPlan& plan) {
  plan.next.collective =
      cheapest_collective(inputs.config, inputs.table.size(), plan.next.compressor == "dense");
}

}  // namespace

extern const ControllerEntry collective_auto;
const ControllerEntry collective_auto{
    Role::collective, "auto", "gather; sum where that saves much, two_sided of a share from 4 devices on",
    &propose};

}  // namespace rivulet::sync::policy
