// Every round, rank 0 gives 8 of its 16 rows to rank 1 before anybody computes.
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double>, RoundPlan& plan) {
  plan.next.rows.assign(in.table.size(), 16);
  plan.next.wait = std::chrono::seconds(3);
  plan.next.moves = {{0, 1, 8}};
  plan.why = "rank 0 helps rank 1";
}

}  // namespace
extern const ControllerEntry policy_move_rows;
const ControllerEntry policy_move_rows{Role::batch, "move_rows", "test only", &propose};
}  // namespace rivulet::sync::policy
