// Draws the exchange of contributions in each round: compressor, keep ratio and collective, from the facts of
// the round or before them. Dense from a given step on, so that all residuals have been sent.
#include "sync/policy/controller.h"
#include "sync/policy/sync_cost.h"
#include "tests/support/parts/policy/drawn.h"
#include "tests/support/parts/policy/many_modes.h"

namespace rivulet::sync::policy {
namespace {

constexpr std::string_view collectives[] = {"gather", "two_sided", "sum", "shared_index"};

Way drawn_way(const Inputs& in, Rng& rng) {
  const std::uint64_t turn = rng.below(4);
  const double keep = turn == 0 || in.table.facts[0].step >= testing::dense_from ? 1 : turn == 1 ? 0.1 : 0.01;
  const std::string_view compressor = keep == 1 ? "dense" : turn == 3 ? "random-k" : "topk";
  Way way = way_of(in.config, in.table.size(), compressor, keep);
  way.collective = collectives[rng.below(4)];
  return way;
}

void propose(const Inputs& in, std::span<double>, RoundPlan& plan) {
  Rng rng = testing::drawn_for(in, "way");
  plan.next.gated = rng.below(2) == 0;
  plan.now.way = drawn_way(in, rng);
  const Way next = drawn_way(in, rng);
  compress_with(in.config, next.compressor, next.keep_ratio, plan.next);
  plan.next.way.collective = next.collective;
}

}  // namespace
extern const ControllerEntry policy_drawn_way;
const ControllerEntry policy_drawn_way{Role::compression, "drawn_way", "test only", &propose};
}  // namespace rivulet::sync::policy
