// The compressor of this name, two bytes per element.
#include "tests/support/parts/policy/compressed.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double>, RoundPlan& plan) {
  testing::propose_compressed(in, plan, "halves", in.config.contribution_bytes / 2);
}

}  // namespace
extern const ControllerEntry policy_halves;
const ControllerEntry policy_halves{Role::batch, "halves", "test only", &propose};
}  // namespace rivulet::sync::policy
