// Rows by round and rank, some of them zero, with unlimited wait: batches do not depend on timing.
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double>, RoundPlan& plan) {
  for (std::size_t rank = 0; rank < in.table.size(); ++rank) {
    const auto k = static_cast<std::uint32_t>(in.round);
    const auto r = static_cast<std::uint32_t>(rank);
    plan.next.rows[rank] = (k + r) % 5 == 0 ? 0 : 4 + (7 * k + 5 * r) % 13;
  }
  plan.next.wait = std::chrono::seconds(3);
  plan.why = "scripted";
}

}  // namespace
extern const ControllerEntry policy_scripted;
const ControllerEntry policy_scripted{Role::batch, "scripted", "test only", &propose};
}  // namespace rivulet::sync::policy
