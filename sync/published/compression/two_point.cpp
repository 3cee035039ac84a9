#include <algorithm>
#include <array>

#include "sync/controllers/batch_rows.h"
#include "sync/policy/coherence.h"
#include "sync/published/gain.h"

namespace rivulet::sync::policy {
namespace {

// ScaDLES, adaptive compression: topk with a fixed keep ratio if it keeps enough of the gradient, else dense.
//
//   x_k = 1 - smoothed gain of device k;   it votes for topk if x_k <= delta;   the majority decides
//
// delta is 1 - epsilon of GraVAC: the same gate. Only the published code has the majority vote. It updates
// residuals even if they are not sent; here a dense contribution includes the residual.

constexpr std::array keys{
    Key{.name = "compression.two_point.keep",
        .text = "0.1",
        .help = "with policy two-point: share of the parameters that topk sends",
        .least = 0,
        .most = 1,
        .above = true},
    Key{.name = "compression.two_point.delta",
        .text = "0.3",
        .help = "with policy two-point: maximum omitted share (1 - gain) at which a device votes for topk",
        .least = 0,
        .most = 10},
    gain_key("compression.two_point.gain", "\"squared\""),
    Key{.name = "compression.two_point.half_life",
        .text = "10",
        .help = "with policy two-point: half-life of the mean omitted share, in rounds",
        .least = 0,
        .most = 10'000,
        .above = true},
};

enum Place : std::size_t { rounds_at, compressed_at, share_at, memory_size };
constexpr std::array figures{
    Figure{"compressed_share", "share of rounds that sent topk (CNC)", share_at},
};
/// For each rank: smoothed share that topk omits, and usual rows per step; 0 before the first value.
enum RankPlace : std::size_t { left_out, usual_rows, per_rank };

struct Votes {
  std::size_t yes = 0;
  std::size_t all = 0;
  double left_out = 0;  ///< mean
};

Votes vote(const Inputs& inputs, std::span<double> memory) {
  const double keep = setting(inputs.config, keys[0].name).number;
  const double delta = setting(inputs.config, keys[1].name).number;
  const GainKind kind = gain_kind(setting(inputs.config, keys[2].name).text);
  const HalfLife mean(setting(inputs.config, keys[3].name).number);
  Votes votes;
  for (std::size_t rank = 0; rank < inputs.table.size(); ++rank) {
    const auto own = memory.subspan(memory_size + rank * per_rank, per_rank);
    if (inputs.table.facts[rank].rows == 0) continue;
    const bool first = own[usual_rows] == 0;
    const bool anew = is_another_batch(step_rows(inputs, rank), own[usual_rows]) || first;
    mean.add(own[left_out], std::abs(1 - gain_of(inputs, rank, keep, kind)), anew);
    ++votes.all;
    votes.yes += own[left_out] <= delta ? 1 : 0;
    votes.left_out += own[left_out];
  }
  if (votes.all > 0) votes.left_out /= static_cast<double>(votes.all);
  return votes;
}

void propose(const Inputs& inputs, std::span<double> memory, RoundPlan& plan) {
  const Votes votes = is_exchanged(inputs, plan) ? vote(inputs, memory) : Votes{};
  const bool compress = 2 * votes.yes > votes.all;
  if (votes.all > 0) {
    memory[rounds_at] += 1;
    memory[compressed_at] += compress ? 1 : 0;
    memory[share_at] = memory[compressed_at] / memory[rounds_at];
    plan.why = std::to_string(votes.yes) + " of " + std::to_string(votes.all) +
               " devices vote for topk with keep ratio " +
               percent(setting(inputs.config, keys[0].name).number) + ", which would omit " +
               percent(votes.left_out);
  }
  keep_finite(memory);
  gate(inputs, compress ? setting(inputs.config, keys[0].name).number : 1, plan);
}

}  // namespace

extern const ControllerEntry compression_two_point;
const ControllerEntry compression_two_point{.role = Role::compression,
                                            .name = "two-point",
                                            .help =
                                                "topk with a fixed keep ratio if it omits little on more "
                                                "than half of the devices, else dense (ScaDLES)",
                                            .propose = &propose,
                                            .keys = keys,
                                            .fact_fields = gain_fields,
                                            .memory = memory_size,
                                            .figures = figures,
                                            .memory_per_rank = per_rank};

}  // namespace rivulet::sync::policy
