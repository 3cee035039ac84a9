// Eight rows from everybody through the counting compressor; in round 7 it is told to send what is not a
// number, and from round 12 on the collective fails after it has encoded.
#include "sync/policy/controller.h"
#include "tests/support/parts/compressor/counting.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double>, RoundPlan& plan) {
  plan.next.rows.assign(in.table.size(), 8);
  plan.next.wait = std::chrono::seconds(3);
  plan.next.compressor = "counting";
  if (in.round == 6) plan.next.keep_ratio = testing::poison;
  if (in.round >= 11) plan.next.collective = "fails_after_encode";
  plan.why = "counted";
}

}  // namespace
extern const ControllerEntry policy_counted_compressor;
const ControllerEntry policy_counted_compressor{Role::batch, "counted_compressor", "test only", &propose};
}  // namespace rivulet::sync::policy
