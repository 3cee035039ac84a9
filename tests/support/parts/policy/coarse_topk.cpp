// The compressor of this name, four entries.
#include "tests/support/parts/policy/compressed.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double>, RoundPlan& plan) {
  testing::propose_compressed(in, plan, "coarse_topk", 4 + 20);
}

}  // namespace
extern const ControllerEntry policy_coarse_topk;
const ControllerEntry policy_coarse_topk{Role::batch, "coarse_topk", "test only", &propose};
}  // namespace rivulet::sync::policy
