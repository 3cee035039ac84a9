// Local steps that overlap the synchronization; after every two such rounds one that sums gradients.
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double>, RoundPlan& plan) {
  plan.next.local.reset();
  if (in.round % 3 != 2) plan.next.local = LocalSchedule{.steps = 4, .overlap = true};
}

}  // namespace
extern const ControllerEntry policy_overlap_then_sums;
const ControllerEntry policy_overlap_then_sums{
    .role = Role::when, .name = "overlap_then_sums", .help = "test only", .propose = &propose};
}  // namespace rivulet::sync::policy
