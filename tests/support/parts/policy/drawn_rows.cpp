// A few rows from every device, drawn for each round, some of them none; a tenth of the rounds is deferred.
#include "sync/policy/controller.h"
#include "tests/support/parts/policy/drawn.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double>, RoundPlan& plan) {
  Rng rng = testing::drawn_for(in, "rows");
  for (std::uint32_t& rows : plan.next.rows)
    rows = rng.below(12) == 0 ? 0 : 6 + static_cast<std::uint32_t>(rng.below(4));
  plan.next.wait = std::chrono::seconds(3);
  plan.why = "drawn";
  const bool exchanges = plan.now.mode == Mode::gradients || plan.now.mode == Mode::delta;
  if (exchanges && rng.below(10) == 0) plan.now.mode = Mode::defer;
}

}  // namespace
extern const ControllerEntry policy_drawn_rows;
const ControllerEntry policy_drawn_rows{Role::batch, "drawn_rows", "test only", &propose};
}  // namespace rivulet::sync::policy
