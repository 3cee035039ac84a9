#include <algorithm>
#include <array>
#include <vector>

#include "sync/controllers/batch_rows.h"
#include "sync/controllers/linear_fit.h"
#include "sync/policy/coherence.h"
#include "sync/policy/sync_cost.h"
#include "sync/published/gain.h"

namespace rivulet::sync::policy {
namespace {

// Flexible communication: the best compromise between time and gain among a few keep ratios.
//
//   objectives of keep ratio c: seconds of the exchange, fitted as A + B bytes(c); 1 / gain(c)
//   among the Pareto-optimal ratios, with each objective scaled to 0 .. 1: the minimum of the larger weighted
//   objective (0.6 time, 0.4 gain), or the knee, which is nearest to the optimum of both
//
// The published code trains ten iterations with each ratio and rolls back. Here all gains come from the same
// gradient. It searches with NSGA-II, which five candidates do not need. Chooses again when a smoothed gain
// or the cost changes by 10 %. A compromise has no bound on its loss, so there is a minimum gain.

constexpr std::array<double, 5> candidates{0.1, 0.033, 0.011, 0.004, 0.001};

constexpr std::array keys{
    Key{.name = "compression.moo.pick",
        .type = KeyType::text,
        .text = "\"weighted\"",
        .help = "with policy moo: criterion on the Pareto front of time and gain: weighted = weighted "
                "Chebyshev distance (0.6 time, 0.4 gain); knee = Euclidean distance",
        .choices = "weighted | knee"},
    Key{.name = "compression.moo.epsilon",
        .text = "0",
        .help = "with policy moo: minimum gain of eligible keep ratios; 0: no minimum",
        .least = 0,
        .most = 10},
    gain_key("compression.moo.gain", "\"squared\""),
    Key{.name = "compression.moo.half_life",
        .text = "5",
        .help = "with policy moo: half-life of the mean gain, in rounds",
        .least = 0,
        .most = 10'000,
        .above = true},
};

constexpr std::array own_fields{
    FactField{"local_seconds", "seconds since the last synchronization"},
    FactField{"sent_bytes", "bytes sent since its last facts"},
    FactField{"exchange_seconds", "seconds of the last exchange, without waiting for later devices"},
};
constexpr std::array fields_requested{gain_fields[0], gain_fields[1], gain_fields[2],
                                      own_fields[0],  own_fields[1],  own_fields[2]};
constexpr std::size_t numbers_of_gain = gain_keeps.size() + 2;
enum Field : std::size_t { local_seconds = numbers_of_gain, sent_bytes, exchange_seconds };

enum Place : std::size_t {
  rounds_at,
  share_at,  ///< keep ratio in use
  gain_at,   ///< gain of that
  cost_at,   ///< first value of LinearFit: seconds by bytes
  gains_at = cost_at + LinearFit::numbers,
  chosen_gain_at = gains_at + candidates.size(),  ///< gain at the last choice
  chosen_seconds_at,
  step_rows_at,  ///< usual rows of a step
  changes_at,    ///< changes of the choice
  memory_size,
};
constexpr std::array figures{
    Figure{"share", "share of the parameters that a device sends", share_at},
    Figure{"gain", "smoothed gain of that share", gain_at},
};
constexpr double moved = 0.1;
constexpr double weight_of_time = 0.6;

double measured(const Inputs& inputs, std::size_t rank, std::size_t field) {
  return std::max(0.0, finite(inputs.table.facts[rank].measurements[inputs.measured + field]));
}

void learn_cost(const Inputs& inputs, std::span<double> memory) {
  double sent = 0;
  double exchange = 0;
  const auto n = static_cast<double>(inputs.table.size());
  for (std::size_t rank = 0; rank < inputs.table.size(); ++rank) {
    sent = std::max(sent, measured(inputs, rank, sent_bytes));
    exchange += measured(inputs, rank, exchange_seconds) / n;
  }
  if (sent > 0 && exchange > 0) LinearFit(memory.subspan(cost_at)).add(sent, exchange);
}

/// Bytes that a device's transport sends.
double bytes_of(const Inputs& inputs, double keep) {
  const Way way = way_of(inputs.config, inputs.table.size(), compressor_for(keep), keep);
  return payloads_sent(way.collective, inputs.table.size()) * static_cast<double>(way.payload_bytes);
}

struct Candidate {
  double keep = 1;
  double seconds = 0;
  double loss = 0;  ///< 1 / gain
  double gain = 0;
};

std::vector<Candidate> eligible(const Inputs& inputs, std::span<double> memory) {
  const double epsilon = setting(inputs.config, keys[1].name).number;
  const LinearFit cost(memory.subspan(cost_at));
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const double gain = memory[gains_at + i];
    if (gain <= 0 || gain < epsilon) continue;
    const double keep = candidates.at(i);
    all.push_back({keep, cost.seconds(bytes_of(inputs, keep)), 1 / gain, gain});
  }
  const auto beaten = [&](const Candidate& one) {
    return std::ranges::any_of(all, [&](const Candidate& other) {
      const bool no_worse = other.seconds <= one.seconds && other.loss <= one.loss;
      return no_worse && (other.seconds < one.seconds || other.loss < one.loss);
    });
  };
  std::vector<Candidate> left;
  std::ranges::copy_if(all, std::back_inserter(left), [&](const Candidate& one) { return !beaten(one); });
  return left;
}

/// Returns the best compromise; everything if no candidate is left.
Candidate best_of(const std::vector<Candidate>& all, bool knee) {
  if (all.empty()) return {};
  const auto [fast, slow] = std::ranges::minmax(all, {}, &Candidate::seconds);
  const auto [near, far] = std::ranges::minmax(all, {}, &Candidate::loss);
  const auto scaled = [](double x, double least, double most) {
    return most > least ? (x - least) / (most - least) : 0;
  };
  const Candidate* best = nullptr;
  double least = 0;
  for (const Candidate& one : all) {
    const double time = scaled(one.seconds, fast.seconds, slow.seconds);
    const double loss = scaled(one.loss, near.loss, far.loss);
    const double value =
        knee ? time * time + loss * loss : std::max(weight_of_time * time, (1 - weight_of_time) * loss);
    if (best == nullptr || value < least) {
      best = &one;
      least = value;
    }
  }
  return *best;
}

bool has_moved(double now, double then) {
  return std::abs(now - then) > moved * std::abs(then);
}

void learn(const Inputs& inputs, std::span<double> memory) {
  const GainKind kind = gain_kind(setting(inputs.config, keys[2].name).text);
  const HalfLife mean(setting(inputs.config, keys[3].name).number);
  const bool anew = is_another_batch(step_rows(inputs), memory[step_rows_at]) || memory[rounds_at] == 0;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    mean.add(memory[gains_at + i], mean_gain(inputs, candidates.at(i), kind), anew);
  learn_cost(inputs, memory);
  memory[rounds_at] += 1;
}

void choose(const Inputs& inputs, std::span<double> memory) {
  const double middle_gain = memory[gains_at + candidates.size() / 2];
  const LinearFit cost(memory.subspan(cost_at));
  const double seconds = cost.seconds(bytes_of(inputs, candidates[0]));
  const bool again =
      has_moved(middle_gain, memory[chosen_gain_at]) || has_moved(seconds, memory[chosen_seconds_at]);
  if (memory[share_at] > 0 && (!again || inputs.settling)) return;
  const bool knee = setting(inputs.config, keys[0].name).text == "knee";
  const Candidate best = best_of(eligible(inputs, memory), knee);
  if (memory[share_at] > 0 && memory[share_at] != best.keep) memory[changes_at] += 1;
  memory[share_at] = best.keep;
  memory[gain_at] = best.gain;
  memory[chosen_gain_at] = middle_gain;
  memory[chosen_seconds_at] = seconds;
}

void propose(const Inputs& inputs, std::span<double> memory, RoundPlan& plan) {
  if (is_exchanged(inputs, plan)) {
    if (!inputs.settling || memory[share_at] == 0) learn(inputs, memory);
    choose(inputs, memory);
    plan.why = percent(memory[share_at]) + " of the parameters: gain " + percent(memory[gain_at]);
  }
  keep_finite(memory);
  gate(inputs, memory[share_at] > 0 ? std::min(1.0, memory[share_at]) : 1, plan);
}

}  // namespace

extern const ControllerEntry compression_moo;
const ControllerEntry compression_moo{
    .role = Role::compression,
    .name = "moo",
    .help = "Pareto-optimal keep ratio by round time and gain, among five candidates (Flexible)",
    .propose = &propose,
    .keys = keys,
    .fact_fields = fields_requested,
    .memory = memory_size,
    .figures = figures,
    .slow = {[](const PolicyConfig& config) { return setting(config, keys[3].name).number; }, changes_at}};

}  // namespace rivulet::sync::policy
