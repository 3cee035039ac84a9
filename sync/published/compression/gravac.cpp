#include <algorithm>
#include <array>

#include "sync/controllers/batch_rows.h"
#include "sync/policy/coherence.h"
#include "sync/published/gain.h"

namespace rivulet::sync::policy {
namespace {

// GraVAC: finds the smallest contribution that keeps enough of the gradient during training.
//
//   compares two factors, a low one and a candidate:
//   sends with the candidate if its gain >= epsilon, else with the low one if its gain >= epsilon, else dense
//   after each window of rounds with an exchange: the candidate becomes the low factor if both gains agree
//   within omega, and the next factor of the ladder becomes the candidate. If two neighbours agree in
//   rows/s times gain within omega, the search ends at the lower one, until its gain is below epsilon.
//
// The paper advances the candidate before it tests the old one's gain. Each worker decides by its own gain,
// so workers may differ. Here the mean decides for all. The time of a round is the slowest compute time plus
// the mean time of the exchange before it.

/// Compression factors: those of the paper's exponential policy.
constexpr std::array<double, 5> ladder{10, 20, 40, 160, 1000};

constexpr std::array keys{
    Key{.name = "compression.gravac.epsilon",
        .text = "0.7",
        .help = "with policy gravac: minimum gain at which a compression factor is used",
        .least = 0,
        .most = 10},
    Key{.name = "compression.gravac.omega",
        .text = "0.01",
        .help = "with policy gravac: relative difference below which two gains or two speeds count as equal",
        .least = 0,
        .most = 1},
    Key{.name = "compression.gravac.window",
        .type = KeyType::integer,
        .text = "500",
        .help = "with policy gravac: number of rounds before the next compression factor (of 10, 20, 40, 160 "
                "and 1000) is tried",
        .least = 1,
        .most = 1'000'000},
    gain_key("compression.gravac.gain", "\"squared\""),
    Key{.name = "compression.gravac.half_life",
        .text = "10",
        .help = "with policy gravac: half-life of the mean gain, in rounds",
        .least = 0,
        .most = 10'000,
        .above = true},
};

enum Place : std::size_t {
  rounds_at,     ///< rounds with an exchange
  low_at,        ///< index in the ladder
  candidate_at,  ///< index in the ladder
  stable_at,     ///< 1: the search is over
  sent_at,       ///< 1 + index in the ladder of the previous round; 0: everything or nothing was sent
  factor_at,     ///< compression factor of the previous round
  gain_at,       ///< mean gain of the candidate
  gains_at,      ///< mean gain of each factor
  speeds_at = gains_at + ladder.size(),   ///< mean rows/s times gain of each factor
  tries_at = speeds_at + ladder.size(),   ///< rounds that used each factor
  seconds_at = tries_at + ladder.size(),  ///< mean exchange seconds of each factor
  drift_at = seconds_at + ladder.size(),  ///< mean relative deviation of the last exchanges from these means
  scatter_at,                             ///< mean absolute relative deviation
  step_rows_at,                           ///< usual rows of a step
  changes_at,                             ///< changes of low factor or candidate
  memory_size,
};
constexpr std::array figures{
    Figure{"compression_factor", "compression factor of the last contributions; 1: dense", factor_at},
    Figure{"gain", "smoothed gain of the candidate", gain_at},
    Figure{"settled", "1 when the search has ended, else 0", stable_at},
};
constexpr double least_tries = 20;  ///< rounds before the speed of a factor counts

double number(const Inputs& inputs, std::size_t key) {
  return setting(inputs.config, keys.at(key).name).number;
}
std::size_t place(double value) {
  return static_cast<std::size_t>(std::clamp(finite(value), 0.0, static_cast<double>(ladder.size() - 1)));
}
bool alike(double a, double b, double omega) {
  return std::abs(a - b) <= omega * std::max(std::abs(a), std::abs(b));
}

double rows_of(const FactsTable& table) {
  double rows = 0;
  for (const Facts& f : table.facts) rows += f.rows;
  return rows;
}

/// Restarts the search with new measurements, since speeds of different links or batches are not comparable.
void forget_speeds(std::span<double> memory) {
  std::ranges::fill(memory.subspan(tries_at, ladder.size()), 0.0);
  memory[drift_at] = memory[scatter_at] = memory[stable_at] = 0;
}

/// Whether exchange times have changed by more than 10 % and by more than their noise.
bool links_have_changed(std::size_t factor, double exchange, std::span<double> memory) {
  constexpr double weight = 0.05;
  constexpr double noise =
      0.6;  // multiple of the scatter: three standard deviations of a mean with that weight
  double& usual = memory[seconds_at + factor];
  if (memory[tries_at + factor] == 0) usual = exchange;
  const double off = usual > 0 ? finite((exchange - usual) / usual) : 0;
  usual += (exchange - usual) / (memory[tries_at + factor] + 1);
  memory[drift_at] += weight * (off - memory[drift_at]);
  memory[scatter_at] += weight * (std::abs(off) - memory[scatter_at]);
  return std::abs(memory[drift_at]) > std::max(0.1, noise * memory[scatter_at]);
}

/// Adds the speed of the previous round's factor.
void learn_speed(const Inputs& inputs, const HalfLife& mean, std::span<double> memory) {
  if (memory[sent_at] < 1) return;
  const std::size_t last = place(memory[sent_at] - 1);
  double seconds = 0;
  double exchange = 0;
  for (const Facts& f : inputs.table.facts) {
    seconds = std::max(seconds, finite(f.compute_seconds));
    exchange += std::max(0.0, finite(f.sync_seconds)) / static_cast<double>(inputs.table.size());
  }
  if (seconds + exchange <= 0) return;
  if (links_have_changed(last, exchange, memory)) forget_speeds(memory);
  const double speed = finite(rows_of(inputs.table) / (seconds + exchange) * memory[gains_at + last]);
  mean.add(memory[speeds_at + last], speed, memory[tries_at + last] == 0);
  memory[tries_at + last] += 1;
}

/// Ends the search if two measured neighbours are equally fast. The lower one stays.
void look_for_end(double omega, std::span<double> memory) {
  for (std::size_t i = 0; i + 1 < ladder.size(); ++i) {
    if (memory[tries_at + i] < least_tries || memory[tries_at + i + 1] < least_tries) continue;
    if (!alike(memory[speeds_at + i], memory[speeds_at + i + 1], omega)) continue;
    memory[stable_at] = 1;
    memory[low_at] = memory[candidate_at] = static_cast<double>(i);
    return;
  }
}

/// Called at the end of a window.
void climb(const Inputs& inputs, std::span<double> memory) {
  const double omega = number(inputs, 1);
  const std::size_t low = place(memory[low_at]);
  const std::size_t candidate = place(memory[candidate_at]);
  if (alike(memory[gains_at + low], memory[gains_at + candidate], omega))
    memory[low_at] = memory[candidate_at];
  look_for_end(omega, memory);
  if (memory[stable_at] == 0)
    memory[candidate_at] = std::min(memory[candidate_at] + 1, static_cast<double>(ladder.size() - 1));
}

/// Counts only rounds in which no other loop is settling.
void count(const Inputs& inputs, std::span<double> memory) {
  if (inputs.settling && memory[rounds_at] > 0) return;
  memory[rounds_at] += 1;
  const double window = number(inputs, 2);
  const double in_window = memory[rounds_at] - window * std::floor(memory[rounds_at] / window);
  if (in_window == 0 && memory[stable_at] == 0) climb(inputs, memory);
}

void learn(const Inputs& inputs, std::span<double> memory) {
  const GainKind kind = gain_kind(setting(inputs.config, keys[3].name).text);
  const HalfLife mean(number(inputs, 4));
  const bool first = memory[rounds_at] == 0;
  const bool another = is_another_batch(step_rows(inputs), memory[step_rows_at]);
  if (first) memory[candidate_at] = 1;
  if (another) forget_speeds(memory);
  if (!inputs.settling) learn_speed(inputs, mean, memory);
  for (std::size_t i = 0; i < ladder.size(); ++i)
    mean.add(memory[gains_at + i], mean_gain(inputs, 1 / ladder.at(i), kind), first || another);
  count(inputs, memory);
}

/// 0: everything; else 1 + index in the ladder.
std::size_t choose(double epsilon, bool may_search, std::span<double> memory) {
  const std::size_t low = place(memory[low_at]);
  const std::size_t candidate = place(memory[candidate_at]);
  if (memory[gains_at + candidate] >= epsilon) return 1 + candidate;
  if (memory[stable_at] != 0 && may_search) {  // the result no longer holds: search again one factor lower
    memory[stable_at] = 0;
    memory[low_at] = static_cast<double>(low > 0 ? low - 1 : 0);
  }
  const std::size_t now_low = place(memory[low_at]);
  return memory[gains_at + now_low] >= epsilon ? 1 + now_low : 0;
}

void propose(const Inputs& inputs, std::span<double> memory, RoundPlan& plan) {
  const bool exchanges = is_exchanged(inputs, plan);
  const bool begins = memory[rounds_at] == 0;
  const std::array before{memory[low_at], memory[candidate_at]};
  if (exchanges) learn(inputs, memory);
  const double epsilon = number(inputs, 0);
  const std::size_t sent = memory[rounds_at] > 0 ? choose(epsilon, !inputs.settling, memory) : 0;
  if (!begins && before != std::array{memory[low_at], memory[candidate_at]}) memory[changes_at] += 1;
  const std::size_t candidate = place(memory[candidate_at]);
  memory[sent_at] = exchanges ? static_cast<double>(sent) : 0;  // no exchange, no time
  memory[factor_at] = sent > 0 ? ladder.at(sent - 1) : 1;
  memory[gain_at] = memory[gains_at + candidate];
  if (exchanges)
    plan.why = "gain " + percent(memory[gain_at]) + " of " + percent(epsilon) + " at " +
               std::to_string(std::lround(ladder.at(candidate))) + "-fold compression" +
               (sent > 0 ? ": " + std::to_string(std::lround(memory[factor_at])) + "-fold compression is used"
                         : ": contributions are dense");
  keep_finite(memory);
  gate(inputs, 1 / memory[factor_at], plan);
}

}  // namespace

extern const ControllerEntry compression_gravac;
const ControllerEntry compression_gravac{
    .role = Role::compression,
    .name = "gravac",
    .help = "largest compression factor with sufficient gain, searched during training (GraVAC)",
    .propose = &propose,
    .keys = keys,
    .fact_fields = gain_fields,
    .memory = memory_size,
    .figures = figures,
    .slow = {[](const PolicyConfig& config) { return setting(config, keys[4].name).number; }, changes_at}};

}  // namespace rivulet::sync::policy
