// Rounds in fixed order: defer, defer, seven of gradients, defer, and gradients until the end. Rounds without
// rows are in between.
#include <array>

#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

constexpr std::array figures{Figure{"turn", "rounds with rows so far", 0}};

void propose(const Inputs& in, std::span<double> memory, RoundPlan& plan) {
  plan.next.rows.assign(in.table.size(), 8);
  plan.next.wait = std::chrono::seconds(3);
  plan.why = "each mode in turn";
  if (plan.now.mode == Mode::idle) return;
  const double turn = memory[0]++;
  if (turn < 2 || turn == 9) plan.now.mode = Mode::defer;
}

}  // namespace
extern const ControllerEntry policy_each_mode;
const ControllerEntry policy_each_mode{.role = Role::batch,
                                       .name = "each_mode",
                                       .help = "test only",
                                       .propose = &propose,
                                       .memory = 1,
                                       .figures = figures};
}  // namespace rivulet::sync::policy
