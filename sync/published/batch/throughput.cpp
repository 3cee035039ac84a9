#include <algorithm>
#include <array>
#include <cmath>

#include "sync/controllers/batch_rows.h"
#include "sync/policy/coherence.h"
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

// Dynamic batching (Tyagi and Sharma, ACSOS 2020; OmniLearn, TPDS 2025): equalizes iteration times at a
// constant number of rows per step.
//
//   open loop, at first and for devices that join: b_k = K b0 X_k / sum X, with the hint X_k of the speed
//   closed loop: mu_k = mean compute time of device k since the last change;  b_k' = b_k mean(mu) / mu_k
//   applied if any b_k changes by more than the dead band; then all measurements restart
//
// The published method restores the sum B by subtracting the same from every device, which distorts the
// proportions. Here rows are scaled, so devices without fixed costs are balanced after one change.

constexpr std::array keys{
    Key{.name = "batch.throughput.window",
        .type = KeyType::integer,
        .text = "20",
        .help = "with policy throughput: number of measured rounds before batch sizes may change",
        .least = 1,
        .most = 10'000},
    Key{.name = "batch.throughput.dead_band",
        .text = "0.05",
        .help = "with policy throughput: minimum relative change of any batch size at which new sizes apply; "
                "raised to twice the standard error of its compute times",
        .least = 0,
        .most = 1},
    Key{.name = "batch.throughput.sum",
        .type = KeyType::text,
        .text = "\"scaled\"",
        .help =
            "with policy throughput: correction that keeps the total number of rows constant: scaled = by "
            "a common factor; shifted = by a common difference (as published)",
        .choices = "scaled | shifted"},
    Key{.name = "batch.throughput.start",
        .type = KeyType::text,
        .text = "\"speeds\"",
        .help = "with policy throughput: initial batch sizes: speeds = in proportion to device.speed; even = "
                "equal on all devices",
        .choices = "speeds | even"},
};

constexpr std::array measurements{
    FactField{"speed_hint", "configured relative speed of the device"},
};

constexpr double least_weight =
    0.1;                        ///< minimum weight of a round in mu: in long windows the last rounds count
constexpr double slower = 0.1;  ///< minimum loss of rows/s that indicates too large a batch, as a share
constexpr double sure = 4;      ///< minimum loss in standard deviations of the measurement
constexpr double likely = 2;    ///< standard deviations for the dead band
constexpr double deviation_weight = 0.05;
constexpr double forgiving = 1.05;  ///< growth of a learned maximum per change

constexpr double most_wanted = 1e9;

/// Layout of the memory: measured rounds, number of changes, and the enum's values for each rank.
constexpr std::size_t rounds_at = 0, changes_at = 1, of_all = 2;
enum Place : std::size_t { rows, mu, deviation, most, rows_before, speed_before, speed_wanted, per_rank };

/// Memory of one rank.
std::span<double, per_rank> of_rank(std::span<double> memory, std::size_t rank) {
  return memory.subspan(of_all + rank * per_rank).first<per_rank>();
}

RowBounds bounds_of(const PolicyConfig& config, const Facts& facts, std::span<const double, per_rank> own) {
  const double most_rows = own[most] > 0 ? std::min<double>(own[most], config.max) : config.max;
  const auto limit = std::min(static_cast<std::uint32_t>(most_rows), std::max(facts.rows_max, 1U));
  return {std::min(config.min, limit), limit};
}

void measure(const Inputs& inputs, std::span<double> memory) {
  bool all = true;
  const double weight = std::max(least_weight, 1 / (1 + memory[rounds_at]));
  for (std::size_t rank = 0; rank < inputs.table.size(); ++rank) {
    const Facts& f = inputs.table.facts[rank];
    const double seconds = finite(f.compute_seconds);
    const auto own = of_rank(memory, rank);
    const bool as_asked = f.rows > 0 && f.rows == own[rows] && seconds > 0;  // not the previous batch
    all = all && as_asked;
    if (!as_asked) continue;
    if (own[mu] > 0) {
      const double off = std::min(1.0, std::abs(seconds - own[mu]) / own[mu]);
      own[deviation] += deviation_weight * (off - own[deviation]);
    }
    own[mu] = own[mu] == 0 ? seconds : own[mu] + weight * (seconds - own[mu]);
  }
  if (all) ++memory[rounds_at];
}

/// Relative standard error of the mean over a window.
double doubt(const Inputs& inputs, std::span<double, per_rank> own) {
  constexpr double deviations = 1.25;  // standard deviation in mean absolute deviations
  return deviations * own[deviation] / std::sqrt(setting(inputs.config, keys[0].name).number);
}

/// A batch that grew and slowed its device down was too large, so its former size becomes the maximum. If the
/// device stays slow at that size, the maximum is dropped.
void ratchet(const Inputs& inputs, std::span<double, per_rank> own) {
  const double speed = own[mu] > 0 ? own[rows] / own[mu] : 0;
  if (own[most] > 0) own[most] *= forgiving;
  const double least = 1 - std::min(0.9, std::max(slower, sure * doubt(inputs, own)));
  const bool is_slower = speed < least * own[speed_before];
  if (own[rows_before] > 0 && own[rows] > own[rows_before] && is_slower) {
    own[most] = own[rows_before];
    own[speed_wanted] = own[speed_before];
  } else if (own[most] > 0 && own[speed_wanted] > 0) {
    if (speed < least * own[speed_wanted]) own[most] = 0;
    own[speed_wanted] = 0;  // checked once
  }
}

std::vector<std::uint32_t> shifted(std::span<const double> wanted, double total,
                                   std::span<const RowBounds> bounds) {
  double sum = 0;
  for (const double w : wanted) sum += w;
  std::vector<std::uint32_t> all;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double less = wanted[i] - (sum - total) / static_cast<double>(wanted.size());
    all.push_back(
        static_cast<std::uint32_t>(std::clamp<double>(std::ceil(less), bounds[i].least, bounds[i].most)));
  }
  return all;
}

/// Splits the total of rows by the devices' speeds.
void adjust(const Inputs& inputs, std::uint64_t total, std::span<double> memory) {
  const std::size_t n = inputs.table.size();
  double mean = 0;
  for (std::size_t rank = 0; rank < n; ++rank) mean += of_rank(memory, rank)[mu] / static_cast<double>(n);
  std::vector<double> wanted;
  std::vector<RowBounds> bounds;
  for (std::size_t rank = 0; rank < n; ++rank) {
    const auto own = of_rank(memory, rank);
    ratchet(inputs, own);
    wanted.push_back(own[mu] > 0 ? std::min(most_wanted, own[rows] * finite(mean / own[mu])) : 0);
    bounds.push_back(bounds_of(inputs.config, inputs.table.facts[rank], own));
  }
  const bool as_published = setting(inputs.config, keys[2].name).text == "shifted";
  const auto next =
      as_published ? shifted(wanted, static_cast<double>(total), bounds) : share_rows(wanted, total, bounds);
  bool changes = false;
  for (std::size_t rank = 0; rank < n; ++rank) {
    const auto own = of_rank(memory, rank);
    const double band = std::max(setting(inputs.config, keys[1].name).number, likely * doubt(inputs, own));
    changes = changes || std::abs(next[rank] - own[rows]) > band * std::max(own[rows], 1.0);
  }
  if (changes) {
    memory[changes_at] += 1;
    for (std::size_t rank = 0; rank < n; ++rank) {
      const auto own = of_rank(memory, rank);
      own[rows_before] = own[rows];
      own[speed_before] = own[mu] > 0 ? own[rows] / own[mu] : 0;
      own[rows] = next[rank];
    }
  }
  for (std::size_t rank = 0; rank < n; ++rank) of_rank(memory, rank)[mu] = 0;
  memory[rounds_at] = 0;
}

/// Configured speeds of all devices; the same for all if one of them has none.
std::vector<double> hints(const Inputs& inputs) {
  std::vector<double> all;
  all.reserve(inputs.table.size());
  for (const Facts& f : inputs.table.facts)
    all.push_back(std::clamp(finite(f.measurements[inputs.measured]), 0.0, most_wanted));
  const bool even = setting(inputs.config, keys[3].name).text == "even";
  if (even || std::ranges::find(all, 0.0) != all.end()) std::ranges::fill(all, 1.0);
  return all;
}

/// A new device starts with the share of its hint. The others keep their proportions.
void start(const Inputs& inputs, std::uint64_t total, std::span<double> memory) {
  const std::size_t n = inputs.table.size();
  const auto is_new = [&](std::size_t rank) {
    const double now = of_rank(memory, rank)[rows];
    return now < 1 || now > inputs.config.max;
  };
  std::vector<double> wanted = hints(inputs);
  double sum = 0;
  for (const double hint : wanted) sum += hint;
  bool any = false;
  std::vector<RowBounds> bounds;
  for (std::size_t rank = 0; rank < n; ++rank) {
    const auto own = of_rank(memory, rank);
    any = any || is_new(rank);
    wanted[rank] = is_new(rank) ? static_cast<double>(total) * wanted[rank] / sum : own[rows];
    bounds.push_back(bounds_of(inputs.config, inputs.table.facts[rank], own));
  }
  if (!any) return;
  const auto shares = share_rows(wanted, total, bounds);
  for (std::size_t rank = 0; rank < n; ++rank) of_rank(memory, rank)[rows] = shares[rank];
}

void propose(const Inputs& inputs, std::span<double> memory, RoundPlan& plan) {
  const PolicyConfig& config = inputs.config;
  const std::size_t n = inputs.table.size();
  const std::uint64_t total = std::uint64_t{config.rows} * n;
  start(inputs, total, memory);
  measure(inputs, memory);
  const bool enough = memory[rounds_at] >= setting(config, keys[0].name).number;
  if (enough && !inputs.settling) adjust(inputs, total, memory);
  keep_finite(memory);
  for (std::size_t rank = 0; rank < n; ++rank)
    plan.next.rows[rank] =
        static_cast<std::uint32_t>(std::clamp<double>(of_rank(memory, rank)[rows], 1, config.max));
  plan.why = "rows in proportion to device speed";
  wait_for_all(inputs.table, plan);
}

}  // namespace

extern const ControllerEntry batch_throughput;
const ControllerEntry batch_throughput{
    .role = Role::batch,
    .name = "throughput",
    .help =
        "batch sizes in proportion to device speed, batch.rows on average, for equal step times (dynamic "
        "batching)",
    .propose = &propose,
    .keys = keys,
    .fact_fields = measurements,
    .memory = of_all,
    .memory_per_rank = per_rank,
    // The average over a window corresponds to its middle.
    .slow = {[](const PolicyConfig& config) { return setting(config, keys[0].name).number / 2; },
             changes_at}};

}  // namespace rivulet::sync::policy
