#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include "sync/policy/coherence.h"
#include "sync/published/collective_cost.h"

namespace rivulet::sync::policy {
namespace {

// Flexible communication: uses the faster of two published collectives and switches during the run. Sparse
// contributions use gather or shared_index, dense ones ring or halving_doubling.
//
//   first     the faster one by the published formulas, on a link of 100 Mbit/s and 1 ms
//   trial     every fifty rounds with an exchange, the other one is tried for a few rounds, if it was never
//             tried, or if the exchange time has changed by a quarter since
//   changes   for a gain of 10 % or more
//
// Each pair has its own choice: a gate may send everything in one round and little in the next.
//
// The published trial trains and rolls back. Here all rounds count, and their exchange times are measured.

constexpr std::array patterns{Pattern::to_all, Pattern::chosen_by_one, Pattern::ring,
                              Pattern::halving_doubling};
constexpr std::size_t gather = 0, shared_index = 1, ring = 2, halving = 3;

constexpr std::array keys{kept_key};
constexpr std::array fields_requested{
    kept_fields[0],
    kept_fields[1],
    FactField{"local_seconds", "seconds since the last synchronization"},
    FactField{"exchange_seconds", "seconds of the last exchange, without waiting for later devices"},
};
constexpr std::size_t exchange_seconds = 3;

enum Place : std::size_t {
  used_at,  ///< 1 + index of the collective of the previous round
  kept_at,  ///< memory of KeptLimit
  changes_at,
  seconds_at,
  pairs_at = seconds_at + patterns.size(),
};
/// Memory of each pair.
enum PairPlace : std::size_t {
  chosen,  ///< 1 + index; 0: none
  dwelt,   ///< rounds with an exchange since the last change
  trial,   ///< not 0: on trial
  then,    ///< exchange seconds of the other collective at the last trial
  per_pair,
};
constexpr std::size_t memory_size = std::size_t{pairs_at} + 2 * std::size_t{per_pair};
constexpr std::array figures{
    Figure{"kept", "mean ratio of residual norm to gradient norm; negative while above the limit", kept_at},
    Figure{"gather_seconds", "seconds of an exchange by gather", seconds_at + gather},
    Figure{"shared_index_seconds", "seconds of an exchange by shared_index", seconds_at + shared_index},
    Figure{"ring_seconds", "seconds of an exchange by ring", seconds_at + ring},
    Figure{"halving_doubling_seconds", "seconds of an exchange by halving_doubling", seconds_at + halving},
};
constexpr double dwell = 50;
constexpr double trial_rounds = 5;
constexpr double moved = 0.25;
constexpr double worth_it = 0.9;
constexpr double newest = 0.3;
constexpr LinkCost usual_link{.message = 0.001, .byte = 8e-8};

std::string_view name_of_choice(std::size_t which) {
  for (const AggregationEntry* entry : builtin_aggregations())
    if (entry->pattern == patterns.at(which)) return entry->name;
  RIVULET_CHECK(false, "this build lacks a published collective");
}

/// Assumes that values and positions each take about half of a payload.
double formula(std::size_t which, std::size_t world, double payload) {
  const SparseBytes halves{payload / 2, payload / 2};
  switch (which) {
    case gather: return gather_seconds(usual_link, world, halves);
    case shared_index:
      return std::min(shared_ring_seconds(usual_link, world, halves),
                      shared_tree_seconds(usual_link, world, halves));
    case ring: return ring_seconds(usual_link, world, payload);
    default: return tree_seconds(usual_link, world, payload / log2_of(static_cast<double>(world)));
  }
}

/// Validates memory of unknown origin: 1 + index, or 0.
std::size_t place(double number) {
  return number >= 1 && number <= static_cast<double>(patterns.size()) ? static_cast<std::size_t>(number) : 0;
}

/// Memory of the pair that begins with `first`.
std::span<double, per_pair> pair_of(std::size_t first, std::span<double> memory) {
  return memory.subspan(first == gather ? pairs_at : pairs_at + std::size_t{per_pair}).first<per_pair>();
}

void learn(const Inputs& inputs, std::span<double> memory) {
  double seconds = 0;
  for (const Facts& f : inputs.table.facts)
    seconds += std::max(0.0, finite(f.measurements[inputs.measured + exchange_seconds]));
  const std::size_t used = place(memory[used_at]);
  if (!(seconds > 0) || used == 0) return;
  seconds /= static_cast<double>(inputs.table.size());
  double& mean = memory[seconds_at + used - 1];
  mean = mean == 0 ? seconds : mean + newest * (seconds - mean);
  const auto pair = pair_of(used - 1 < ring ? gather : ring, memory);
  if (memory[used_at] == pair[chosen]) pair[dwelt] += 1;
}

/// Chooses within the pair that begins with `first`. `now`: the current choice.
std::size_t choose(std::size_t first, std::size_t now, std::span<double> memory) {
  const auto pair = pair_of(first, memory);
  const std::size_t other = now == first ? first + 1 : first;
  const double seconds = memory[seconds_at + now];
  const double of_other = memory[seconds_at + other];
  if (pair[trial] != 0) {
    if (pair[dwelt] < trial_rounds) return now;
    pair[trial] = 0;
    pair[then] = of_other;
    if (seconds < worth_it * of_other) {  // the tried one stays
      pair[then] = seconds;
      return now;
    }
    return other;
  }
  if (pair[dwelt] < dwell || seconds == 0) return now;
  const bool known = of_other > 0 && std::abs(seconds - pair[then]) <= moved * pair[then];
  if (known) return now;
  pair[trial] = 1;
  memory[seconds_at + other] = 0;
  return other;
}

std::size_t next_of(const Inputs& inputs, std::span<double> memory, std::size_t first, double payload) {
  const std::size_t now = place(pair_of(first, memory)[chosen]);
  if (now == first + 1 || now == first + 2) return inputs.settling ? now - 1 : choose(first, now - 1, memory);
  const std::size_t world = inputs.table.size();
  return formula(first + 1, world, payload) < formula(first, world, payload) ? first + 1 : first;
}

/// 1 + index of the collective of this round; 0 if another one was used, or nothing was exchanged.
double used_in(const Inputs& inputs, const RoundPlan& plan, std::string_view collective) {
  if (plan.now.mode != Mode::gradients && plan.now.mode != Mode::delta) return 0;
  const std::string_view used = plan.now.way ? collective : inputs.entered.way.collective;
  const AggregationEntry* how = collective_named(used);
  if (how == nullptr) return 0;
  const auto* const place = std::ranges::find(patterns, how->pattern);
  return place == patterns.end() ? 0 : static_cast<double>(place - patterns.begin()) + 1;
}

void propose(const Inputs& inputs, std::span<double> memory, RoundPlan& plan) {
  if (inputs.table.size() < 2) return;
  const Way& way = plan.now.way ? *plan.now.way : plan.next.way;
  const std::string_view compressor = way.compressor;
  const auto payload = static_cast<double>(way.payload_bytes);
  KeptLimit limit(setting(inputs.config, kept_key.name).number, memory[kept_at]);
  limit.add(kept_ratio(inputs));
  if (!inputs.settling) learn(inputs, memory);
  const CompressorEntry* small = compressor_named(compressor);
  const SlotKind kind = small != nullptr ? small->kind() : SlotKind::mixture;
  if (kind == SlotKind::mixture) {  // only one collective can sum these
    memory[used_at] = 0;
    return use_collective(stand_in_for(small != nullptr ? *small : usual_compressor(kind)).name, plan);
  }
  const bool dense = kind == SlotKind::whole;
  const std::size_t which = next_of(inputs, memory, dense ? ring : gather, payload);
  const auto pair = pair_of(dense ? ring : gather, memory);
  if (static_cast<double>(which) + 1 != pair[chosen]) {
    pair[dwelt] = 0;
    memory[changes_at] += pair[chosen] != 0 ? 1 : 0;
  }
  pair[chosen] = static_cast<double>(which) + 1;
  // If residuals are too large, gathers for a while, even if the other collective is faster.
  const std::size_t taken = which == shared_index && limit.exceeded() ? gather : which;
  const std::string_view name = name_of_choice(taken);
  use_collective(name, plan);
  memory[used_at] = used_in(inputs, plan, name);
  plan.why = std::string(name) + (pair[trial] != 0 ? ", on trial" : "");
  keep_finite(memory);
}

}  // namespace

extern const ControllerEntry collective_learned;
const ControllerEntry collective_learned{
    .role = Role::collective,
    .name = "learned",
    .help =
        "the collective measured as faster: gather or shared_index for sparse payloads, ring or "
        "halving_doubling for dense ones (Flexible)",
    .propose = &propose,
    .keys = keys,
    .fact_fields = fields_requested,
    .memory = memory_size,
    .figures = figures,
    .slow = {[](const PolicyConfig&) { return half_life_of_mean(newest); }, changes_at}};

}  // namespace rivulet::sync::policy
