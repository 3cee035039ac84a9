// The compressor of this name, four entries.
#include "tests/support/parts/policy/compressed.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double>, RoundPlan& plan) {
  testing::propose_compressed(in, plan, "exact_topk", 32);
}

}  // namespace
extern const ControllerEntry policy_exact_topk;
const ControllerEntry policy_exact_topk{Role::batch, "exact_topk", "test only", &propose};
}  // namespace rivulet::sync::policy
