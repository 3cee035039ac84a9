// Seven rows from every device, alternating between two compressors and dense; dense from a given step on, so
// that all residuals have been sent.
#include "tests/support/parts/policy/many_modes.h"

#include "sync/policy/controller.h"
#include "tests/support/parts/policy/compressed.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double>, RoundPlan& plan) {
  plan.next.rows.assign(in.table.size(), 7);
  plan.next.wait = std::chrono::seconds(3);
  plan.why = "many modes";
  const std::uint64_t step = in.table.facts[0].step;
  const std::uint64_t turn = step / 25 % 4;
  if (turn == 3 || step >= testing::dense_from) return;
  plan.next.way.compressor = turn == 2 ? "coarse_topk" : "exact_topk";
  plan.next.way.payload_bytes = turn == 2 ? 4 + 20 : 32;  // four entries
  plan.next.way.keep_ratio = testing::compressed_keep;
}

}  // namespace
extern const ControllerEntry policy_many_modes;
const ControllerEntry policy_many_modes{Role::batch, "many_modes", "test only", &propose};
}  // namespace rivulet::sync::policy
