#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "sync/controllers/batch_rows.h"
#include "sync/policy/coherence.h"
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

// One tick T for all devices, such that the rows of a group step are worth their cost:
//
//   sum_k b_k(T) = B,   b_k(T) = min((T - a_k) / c_k,  q_k / H + S_k T,  most_k)
//
//   a_k + c_k b   measured time of device k for a step of b rows
//   S_k, q_k      its stream rate and queue; H: local steps until the next synchronization
//   B             a share of the gradient noise scale: far below it the number of steps does not change
//                 the worth of a row, near it a row is worth half as much (McCandlish et al. 2018)
//
// Plentiful streams give dynamic batching, plentiful compute gives ScaDLES with an adapted tick, a backlog
// gives steps of B rows at full speed. No device waits for a stream whose next row is further away than T.

constexpr std::array keys{
    Key{.name = "batch.noise_share",
        .text = "0.125",
        .help =
            "with policy unified: target number of rows of a group step, as a share of the gradient noise "
            "scale",
        .least = 0,
        .most = 100,
        .above = true},
};

constexpr std::array measurements{
    FactField{"compute_fixed_seconds", "fixed time of a step, independent of its rows, in seconds"},
    FactField{"compute_row_seconds", "time that each row adds to a step, in seconds"},
    FactField{"gradient_signal", "estimated squared norm of its stream's mean gradient"},
    FactField{"gradient_noise", "trace of the covariance of per-row gradients"},
};
enum Field : std::size_t { fixed_seconds, row_seconds, gradient_signal, gradient_noise };

enum Place : std::size_t {
  signal_at,
  noise_at,
  scale_at,
  tick_at,
  counted_at,  ///< the scale at the last counted change
  changes_at,
  memory_size,
};
constexpr std::array figures{
    Figure{"gradient_noise_scale",
           "batch size in rows at which the mean gradient has as much noise as signal", scale_at},
    Figure{"tick_seconds", "duration of a group step in seconds", tick_at},
};

constexpr double weight_of_a_round = 0.1;  ///< weight of the newest round in the mean signal and noise
constexpr double first_scale = 128;        ///< scale before the first measurement of noise
constexpr double largest_scale = 1e9;
constexpr double most_change = 1.1;  ///< factor between two updates of the scale
constexpr double most_fixed = 5;  ///< multiple of a_k: longer ticks save less than a fifth of the computing
constexpr double batches_of_a_backlog = 4;  ///< minimum queue of a backlog, in batches of maximum size
constexpr double headroom = 1.1;            ///< margin on the tick in which a device keeps up with its stream
constexpr double longest_tick = 3600;
constexpr double shortest_wait = 1e-3;

double measured(const Inputs& inputs, std::size_t rank, Field field) {
  return finite(inputs.table.facts[rank].measurements[inputs.measured + field]);
}

/// What a device can contribute to a step.
struct Capacity {
  double fixed = 0;
  double each = 0;
  double rate = 0;
  double waiting = 0;  ///< queued rows per step
  double most = 0;
  bool backlog = false;  ///< the queue is so long that the rate measures how fast it is read

  /// Rows available and computable in a tick.
  [[nodiscard]] double rows(double tick) const {
    const double by_compute =
        each > 0 ? std::max(0.0, (tick - fixed) / each) : std::numeric_limits<double>::infinity();
    return std::min({by_compute, waiting + rate * tick, most});
  }
  /// Minimum tick that keeps up with the stream. If none does, a tick with little fixed overhead.
  [[nodiscard]] double keeps_up() const {
    if (backlog || rate == 0) return 0;
    const double busy = std::min(1.0, rate * each);
    return fixed * (busy < 1 ? std::min(most_fixed, headroom / (1 - busy)) : most_fixed);
  }
};

std::vector<Capacity> capacities(const Inputs& inputs, const Schedule& next) {
  std::vector<Capacity> all;
  const PolicyConfig& config = inputs.config;
  for (std::size_t rank = 0; rank < inputs.table.size(); ++rank) {
    const Facts& f = inputs.table.facts[rank];
    all.push_back({.fixed = std::clamp(measured(inputs, rank, fixed_seconds), 0.0, longest_tick),
                   .each = std::clamp(measured(inputs, rank, row_seconds), 0.0, longest_tick),
                   .rate = std::max(0.0, finite(f.stream_rate)),
                   .waiting = static_cast<double>(f.queue_rows) / next.steps(),
                   .most = static_cast<double>(std::min(config.max, std::max(f.rows_max, config.min)))});
    all.back().backlog = f.queue_rows > batches_of_a_backlog * all.back().most;
  }
  return all;
}

/// The scale drifts slowly. Other loops wait only for a change by half or more.
void count_changes(std::span<double> memory) {
  double& counted = memory[counted_at];
  if (counted == 0) counted = memory[scale_at];
  if (!differ_by_half(memory[scale_at], counted)) return;
  counted = memory[scale_at];
  memory[changes_at] += 1;
}

void learn_noise(const Inputs& inputs, std::span<double> memory) {
  if (inputs.settling && memory[noise_at] > 0) return;
  double signal = 0;
  double noise = 0;
  double devices = 0;
  for (std::size_t rank = 0; rank < inputs.table.size(); ++rank) {
    if (inputs.table.facts[rank].rows == 0 || measured(inputs, rank, gradient_noise) <= 0) continue;
    signal += measured(inputs, rank, gradient_signal);
    noise += measured(inputs, rank, gradient_noise);
    ++devices;
  }
  if (devices == 0) return;
  const auto average = [&](double& place, double now) {
    place = memory[noise_at] == 0 ? now : place + weight_of_a_round * (now - place);
  };
  average(memory[signal_at], signal / devices);
  average(memory[noise_at], noise / devices);
  const double least_signal = memory[noise_at] / largest_scale;
  const double now = memory[noise_at] / std::max(memory[signal_at], least_signal);
  const double before = memory[scale_at] > 0 ? memory[scale_at] : first_scale;
  // Both values are noisy. Their ratio has no mean, since the signal may be 0.
  memory[scale_at] = std::clamp(now, before / most_change, before * most_change);
  count_changes(memory);
}

/// Worthwhile rows per step of the whole group.
double rows_that_pay(const Inputs& inputs, std::span<const double> memory) {
  const auto n = static_cast<double>(inputs.table.size());
  const double scale = memory[scale_at] > 0 ? memory[scale_at] : first_scale;
  return std::clamp(setting(inputs.config, keys[0].name).number * scale, n * inputs.config.min,
                    n * inputs.config.max);
}

double rows_of(std::span<const Capacity> all, double tick) {
  double rows = 0;
  for (const Capacity& one : all) rows += one.rows(tick);
  return rows;
}

/// Returns the tick in which this many rows arrive, or `longest` if they never do.
double tick_of(std::span<const Capacity> all, double rows, double shortest, double longest) {
  if (rows_of(all, shortest) >= rows) return shortest;
  if (rows_of(all, longest) <= rows) return longest;
  double low = shortest;
  double high = longest;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (rows_of(all, middle) < rows ? low : high) = middle;
  }
  return high;
}

void ask(const Inputs& inputs, std::span<const Capacity> all, double tick, double most, Schedule& next) {
  std::vector<double> shares;
  std::vector<RowBounds> bounds;
  for (const Capacity& one : all) {
    shares.push_back(one.rows(tick));
    bounds.push_back({0, static_cast<std::uint32_t>(one.most)});
  }
  const double total = std::min(rows_of(all, tick), most);
  next.rows = share_rows(shares, static_cast<std::uint64_t>(std::floor(total + 0.5)), bounds);
  double computing = 0;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (next.rows[rank] < inputs.config.min) next.rows[rank] = 0;
    if (next.rows[rank] > 0)
      computing = std::max(computing, all[rank].fixed + all[rank].each * next.rows[rank]);
  }
  // The rest of the tick after the slowest device has computed. Rows may arrive a little late.
  const Duration left = from_seconds(std::max({tick - computing, tick / 4, shortest_wait}));
  next.wait = std::min(inputs.config.max_wait, left);
}

void propose(const Inputs& inputs, std::span<double> memory, RoundPlan& plan) {
  learn_noise(inputs, memory);
  const auto all = capacities(inputs, plan.next);
  double shortest = 0;
  double longest = to_seconds(inputs.config.tick);
  for (const Capacity& one : all) {
    shortest = std::max(shortest, one.keeps_up());
    longest = std::max(longest, most_fixed * one.fixed);
  }
  longest = std::min(std::max(longest, shortest), longest_tick);
  const double wanted = rows_that_pay(inputs, memory);
  const double tick = tick_of(all, wanted, shortest, longest);
  memory[tick_at] = tick;
  keep_finite(memory);
  const bool keeps_up = shortest > 0 && tick <= shortest;  // at any cost
  ask(inputs, all, tick, keeps_up ? rows_of(all, tick) : wanted, plan.next);
  double asked = 0;
  for (const std::uint32_t rows : plan.next.rows) asked += rows;
  plan.next.rest = asked == 0;
  // Streams too slow for a row per tick: pause instead of spinning through empty rounds.
  if (plan.next.rest) plan.next.wait = inputs.config.max_wait;
  const char* limit = tick >= longest ? "limited by the streams"
                      : keeps_up      ? "to keep up with the streams"
                                      : "limited by gradient noise";
  const auto tenths = static_cast<std::uint64_t>(tick * 1e4);  // tenths of a millisecond
  plan.why = "steps of " + std::to_string(static_cast<std::uint64_t>(asked)) + " rows in " +
             std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " ms, " + limit;
}

}  // namespace

extern const ControllerEntry batch_unified;
const ControllerEntry batch_unified{
    .role = Role::batch,
    .name = "unified",
    .help = "batch sizes from stream rates, device speeds and gradient noise",
    .propose = &propose,
    .keys = keys,
    .fact_fields = measurements,
    .memory = memory_size,
    .figures = figures,
    .slow = {[](const PolicyConfig&) { return half_life_of_mean(weight_of_a_round); }, changes_at},
    .fills_ticks = true};

}  // namespace rivulet::sync::policy
