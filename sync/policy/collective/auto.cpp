#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

// Gather takes two phases and sends (N - 1) payloads, sum takes more phases and sends about 2 (N - 1) / N.
// Below a quarter of a MiB saved, the phases cost more than the bytes.
void propose(const Inputs& inputs, std::span<double>, RoundPlan& plan) {
  constexpr double worth_it = 256.0 * 1024;
  const auto n = static_cast<double>(inputs.table.size());
  const double saved = (n - 1) * (1 - 2 / n) * static_cast<double>(inputs.config.contribution_bytes);
  plan.next.collective = saved >= worth_it ? "sum" : "gather";
}

}  // namespace

extern const ControllerEntry collective_auto;
const ControllerEntry collective_auto{Role::collective, "auto", "gather, or sum where that saves much",
                                      &propose};

}  // namespace rivulet::sync::policy
