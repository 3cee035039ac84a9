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

// Flexible communication: of two published collectives the one that takes less time, changed while the group
// runs. What is compressed goes by gather or shared_index, whole contributions by ring or halving_doubling.
//
//   first     the one that the published formulas name, on a link of 100 Mbit/s and 1 ms
//   trial     after fifty rounds that agreed the other one is tried for a few, if it never was, or if what an
//             exchange takes has changed by a quarter since
//   changes   for a gain of a tenth at least
//
// Each of the two pairs has a choice of its own: a gate may send all in one round and little in the next.
//
// Their trial trains and goes back; here all rounds count, and what is measured is how long they took.

constexpr std::array patterns{Pattern::to_all, Pattern::chosen_by_one, Pattern::ring,
                              Pattern::halving_doubling};
constexpr std::size_t gather = 0, shared_index = 1, ring = 2, halving = 3;

constexpr std::array keys{kept_key};
constexpr std::array fields_wanted{
    kept_fields[0],
    kept_fields[1],
    FactField{"apart_seconds", "since the last agreement"},
    FactField{"exchange_seconds", "of the last agreement, without waiting for who came later"},
};
constexpr std::size_t exchange_seconds = 3;

enum Place : std::size_t {
  used_at,  ///< in the round before; 1 + which
  kept_at,  ///< of KeptLimit
  changes_at,
  seconds_at,
  pairs_at = seconds_at + patterns.size(),
};
/// Of each pair.
enum PairPlace : std::size_t {
  chosen,  ///< 1 + which; 0: none
  dwelt,   ///< its rounds that agreed since the choice has changed
  trial,   ///< this is a trial
  then,    ///< seconds of the one when the other was tried last
  per_pair,
};
constexpr std::size_t memory_size = std::size_t{pairs_at} + 2 * std::size_t{per_pair};
constexpr std::array figures{
    Figure{"kept", "what a device has kept, in contributions; below 0 while that is too much", kept_at},
    Figure{"gather_seconds", "that an exchange takes by gather", seconds_at + gather},
    Figure{"shared_index_seconds", "... by shared_index", seconds_at + shared_index},
    Figure{"ring_seconds", "... by ring", seconds_at + ring},
    Figure{"halving_doubling_seconds", "... by halving_doubling", seconds_at + halving},
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
  RIVULET_CHECK(false, "one of the published collectives is not in this build");
}

/// Halves of a payload are values and positions, about.
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

/// Of memory that anybody may have written: 1 + which, or 0.
std::size_t place(double number) {
  return number >= 1 && number <= static_cast<double>(patterns.size()) ? static_cast<std::size_t>(number) : 0;
}

/// Of the pair that begins with `first`.
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

/// Of the pair that begins with `first`, `now` being the one.
std::size_t choose(std::size_t first, std::size_t now, std::span<double> memory) {
  const auto pair = pair_of(first, memory);
  const std::size_t other = now == first ? first + 1 : first;
  const double seconds = memory[seconds_at + now];
  const double of_other = memory[seconds_at + other];
  if (pair[trial] != 0) {
    if (pair[dwelt] < trial_rounds) return now;
    pair[trial] = 0;
    pair[then] = of_other;
    if (seconds < worth_it * of_other) {  // it stays
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

/// Of the round whose facts these are; nothing if none of these was used, or nothing was exchanged.
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
  if (kind == SlotKind::mixture) {  // there is one way to sum it
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
  // Too much is kept: for a while, whatever is faster.
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
    .help = "of two published ones the one that was faster (Flexible)",
    .propose = &propose,
    .keys = keys,
    .fact_fields = fields_wanted,
    .memory = memory_size,
    .figures = figures,
    .slow = {[](const PolicyConfig&) { return half_life_of_mean(newest); }, changes_at}};

}  // namespace rivulet::sync::policy
