#include "sync/policy/coherence.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace rivulet::sync::policy {
namespace {

double rows_of(std::span<const Delta> deltas) {
  double rows = 0;
  for (const Delta& m : deltas) rows += m.rows;
  return rows;
}

/// Similarity of single deltas D: sum of rho rho' D D' over all pairs, relative to sum rho |D|^2. nullopt if
/// no device has moved.
std::optional<double> common_of(std::span<const Delta> deltas, double rows) {
  std::vector<double> sum(deltas.front().sketch.size());
  double squares = 0;
  double own = 0;  // pairs of a delta with itself
  for (const Delta& m : deltas) {
    const double share = m.rows / rows;
    double square = 0;
    for (std::size_t i = 0; i < std::min(sum.size(), m.sketch.size()); ++i) {
      const double s = finite(m.sketch[i]);
      sum[i] += share * s;
      square += s * s;
    }
    squares += share * square;
    own += share * share * square;
  }
  double together = 0;
  for (const double s : sum) together += s * s;
  if (!(squares > 0)) return std::nullopt;
  return (together - own) / squares;
}

/// Expected similarity if all devices drew from one stream. The common part of a device's odd and even steps
/// is then the signal of all, scaled by their steps. nullopt if unknown. May be negative by chance: only then
/// is the mean 0 where all is noise.
std::optional<double> common_of_alike(std::span<const Delta> deltas, double rows) {
  double signal = 0;
  double squares = 0;
  double steps = 0;
  double own = 0;
  double square_steps = 0;
  for (const Delta& m : deltas) {
    const double share = m.rows / rows;
    signal += share * finite(m.signal);
    squares += share * (std::abs(finite(m.signal)) + std::max(0.0, finite(m.noise)));
    steps += share * m.steps;
    own += share * share * m.steps * m.steps;
    square_steps += share * m.steps * m.steps;
  }
  if (!(squares > 0) || !(square_steps > 0)) return std::nullopt;
  return finite(signal / square_steps * (steps * steps - own) / squares);
}

}  // namespace

std::optional<Coherence> coherence(std::span<const Delta> deltas) {
  const double rows = rows_of(deltas);
  if (rows <= 0) return std::nullopt;
  const auto common = common_of(deltas, rows);
  const auto expected = common_of_alike(deltas, rows);
  if (!common || !expected) return std::nullopt;
  const auto devices = std::ranges::count_if(deltas, [](const Delta& m) { return m.rows > 0; });
  return Coherence{finite(std::clamp(*common, -1.0, 1.0)), std::clamp(*expected, -1.0, 1.0),
                   static_cast<double>(devices)};
}

double CoherenceFilter::weight() const {
  constexpr double rounds_max = 16;
  return 1 / std::clamp(memory_[seen], 1.0, rounds_max);
}

double CoherenceFilter::doubt() const {
  return std::max(0.0, memory_[spread]) * weight() / (2 - weight());
}

bool CoherenceFilter::all_is_noise() const {
  constexpr double deviations = 2;
  return memory_[seen] > 0 && !(memory_[expected] > deviations * std::sqrt(doubt()));
}

void CoherenceFilter::add(const std::optional<Coherence>& now, double local_steps) {
  constexpr double drift = 0.01;           // variance added per synchronization: streams change
  constexpr double forgotten = 1 / 512.0;  // decay of the estimate towards 1 without new measurements
  constexpr double beginning = 32;         // synchronizations
  constexpr double sketch_error = 0.1;     // error of the similarity, from 32 elements (docs/adr/0031)
  // Prior deviation of the expected similarity. A model that begins to learn moves more than its noise, and
  // streams that differ must be found early; later the opposite is true.
  const double first_spread = memory_[age] < beginning ? 0.3 : 0.6;
  if (memory_[variance] == 0) memory_[mean] = memory_[variance] = 1;
  memory_[mean] += forgotten * (1 - memory_[mean]);
  memory_[variance] = std::min(1.0, memory_[variance] + drift);
  if (!now) return;
  if (local_steps >= 2 * memory_[steps] || 2 * local_steps <= memory_[steps]) memory_[seen] = 0;
  if (memory_[seen] == 0) {
    memory_[steps] = local_steps;
    memory_[expected] = 0;
    memory_[spread] = first_spread * first_spread / std::max(1.0, now->devices);
  }
  const double apart = now->expected - memory_[expected];
  memory_[seen] = std::clamp(memory_[seen] + 1, 1.0, 1e6);
  memory_[age] = std::clamp(memory_[age] + 1, 1.0, 1e6);
  memory_[expected] += weight() * apart;
  if (memory_[seen] > 1) memory_[spread] += weight() * (apart * apart - memory_[spread]);
  if (all_is_noise()) return;
  // An expectation that is large by chance would make streams seem dissimilar, so its lower bound counts.
  const double sure = memory_[expected] - std::sqrt(doubt());
  const double alike = now->common / sure;
  const double known = std::clamp(alike, 0.0, 2.0);
  const double error = (sketch_error * sketch_error + known * known * doubt()) / (sure * sure);
  const double gain = memory_[variance] / (memory_[variance] + error);
  memory_[mean] = std::clamp(finite(memory_[mean] + gain * (alike - memory_[mean])), 0.0, 2.0);
  memory_[variance] *= 1 - gain;
}

double loss_variance(const FactsTable& table, double loss, double usual) {
  if (!(loss > 0) || !(usual > 0)) return 0;
  double squares = 0;
  double devices = 0;
  double rows = 0;
  for (const Facts& f : table.facts) {
    if (f.rows == 0) continue;
    const double apart = finite(f.loss_sum) / f.rows - loss;
    squares += f.rows * apart * apart;
    rows += f.rows;
    ++devices;
  }
  const double between = devices > 1 ? squares / (devices - 1) / (loss * loss) : 0;
  const double risen = std::clamp((loss - usual) / usual, 0.0, 0.5);
  return finite(std::max(between, rows * risen * risen));
}

double log2_of(double x) {
  constexpr double ln2 = 0.693147180559945309;
  if (!(x > 0) || !std::isfinite(x)) return 0;
  int exponent = 0;
  const double part = std::frexp(x, &exponent);  // x = part * 2^exponent, 0.5 <= part < 1
  if (part == 0.5) return exponent - 1;
  const double y = (part - 1) / (part + 1);  // ln(part) = 2 (y + y^3 / 3 + ...), |y| <= 1 / 3
  double power = y;
  double sum = 0;
  for (int n = 1; n < 40; n += 2, power *= y * y) sum += power / n;
  return exponent + 2 * sum / ln2;
}

double doublings(double x) {
  if (!(x > 1)) return 0;
  int exponent = 0;
  const double part = std::frexp(x, &exponent);  // x = part * 2^exponent, 0.5 <= part < 1
  return std::isfinite(x) ? exponent - 2 + 2 * part : 1024;
}

}  // namespace rivulet::sync::policy
