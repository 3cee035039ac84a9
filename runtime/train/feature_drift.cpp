#include "runtime/train/feature_drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/vector_code.h"
#include "devices/first_rows.h"
#include "devices/spread.h"

namespace rivulet::runtime {
namespace {

constexpr std::size_t rows_at_once = 64;  ///< judged together
constexpr double rows_of_usual = 10'000;
constexpr double rows_of_recent = 200;
constexpr double rows_before = 500;
constexpr double rows_judged = 2500;          ///< shorter windows may be part of a slow wave
constexpr double clipped_at = 8;              ///< standard deviations
constexpr float unclipped = 1e16F;            ///< the squares of a batch fit 32 bits
constexpr double far = 3;                     ///< standard deviations
constexpr double rounding = 1e-6;             ///< minimum deviation, relative to the mean
constexpr std::uint32_t much_longer = 4;      ///< times the longest run of one value so far
constexpr std::uint32_t enough_turns = 40;    ///< changes of value
constexpr std::uint32_t long_ago = 1U << 30;  ///< rows: counters stop here

// Adds a row of features. Pointers in a struct would prevent vectorization of these loops.

RIVULET_VECTOR_CODE void add_row(const float* __restrict x, std::size_t features,
                                 const float* __restrict center, const float* __restrict reach,
                                 float* __restrict sum, float* __restrict square,
                                 float* __restrict as_they_came, std::uint32_t* __restrict missing) {
  for (std::size_t i = 0; i < features; ++i) {
    const float away = x[i] - center[i];
    const float offset = away == away ? away : 0;
    const float low = offset < -reach[i] ? -reach[i] : offset;
    const float within = low > reach[i] ? reach[i] : low;
    const float shown_low = offset < -unclipped ? -unclipped : offset;
    const float shown = shown_low > unclipped ? unclipped : shown_low;
    sum[i] += within;
    square[i] += within * within;
    as_they_came[i] += shown;
    missing[i] += static_cast<std::uint32_t>(away != away);
  }
}

RIVULET_VECTOR_CODE void count_still(const float* __restrict x, std::size_t features, float* __restrict last,
                                     std::uint32_t* __restrict still, std::uint32_t* __restrict longest,
                                     std::uint32_t* __restrict turns) {
  for (std::size_t i = 0; i < features; ++i) {
    const float was = last[i];
    const auto is_value = static_cast<std::uint32_t>(x[i] == x[i]);
    const auto other = static_cast<std::uint32_t>(x[i] != was) & is_value;
    const auto is_known = static_cast<std::uint32_t>(was == was);
    const std::uint32_t before = still[i];
    const std::uint32_t over = other != 0 ? before : 0;
    turns[i] += other & is_known;
    longest[i] = over > longest[i] ? over : longest[i];
    still[i] = other != 0 ? 1 : before + is_value;
    last[i] = is_value != 0 ? x[i] : was;
  }
}

}  // namespace

FeatureDrift::FeatureDrift(std::size_t features)
    : known_(features, Known{.until_next = rows_before}),
      center_(features, std::numeric_limits<float>::quiet_NaN()),
      reach_(features, unclipped),
      sum_(features, 0),
      square_(features, 0),
      as_they_came_(features, 0),
      missing_(features, 0),
      last_(features, std::numeric_limits<float>::quiet_NaN()),
      still_(features, 0),
      longest_(features, 0),
      turns_(features, 0) {}

double FeatureDrift::Spread::deviation() const noexcept {
  return std::max(std::sqrt(variance), rounding * std::abs(mean));
}

double FeatureDrift::Known::measured_distance() const noexcept {
  if (rows < rows_judged || before.deviation() == 0) return 0;
  return std::abs(recent.mean - before.mean) / before.deviation();
}

bool FeatureDrift::add(const float* values, std::size_t rows, std::size_t columns) {
  bool judged = false;
  for (std::size_t row = 0; row < rows; ++row) {
    const float* x = values + row * columns;
    count_still(x, features(), last_.data(), still_.data(), longest_.data(), turns_.data());
    if (!all_begun_) first_.insert(first_.end(), x, x + features());
    add_row(x, features(), center_.data(), reach_.data(), sum_.data(), square_.data(), as_they_came_.data(),
            missing_.data());
    if (++waiting_ < rows_at_once) continue;
    judge();
    judged = true;
  }
  return judged;
}

void FeatureDrift::judge() {
  bool all_begun = true;
  for (std::size_t i = 0; i < features(); ++i) {
    begun(i) ? judge_feature(i) : begin_feature(i);
    all_begun = all_begun && begun(i);
    sum_[i] = square_[i] = as_they_came_[i] = 0;
    missing_[i] = 0;
    still_[i] = std::min(still_[i], long_ago);
    turns_[i] = std::min(turns_[i], long_ago);
  }
  all_begun_ = all_begun;
  first_.clear();
  waiting_ = 0;
}

/// Measures the first rows robustly: a single absurd value has no effect.
void FeatureDrift::begin_feature(std::size_t i) {
  const auto first = devices::first_rows({first_.data() + i, rows_at_once, features()}, clipped_at, sorted_);
  if (first.count == 0) return;
  const Spread spread{first.mean, first.variance};
  known_[i] = {.rows = first.count,
               .usual = spread,
               .until_next = rows_before - first.count,
               .recent = spread,
               .now = first.mean};
  bound(i);
}

void FeatureDrift::judge_feature(std::size_t i) {
  Known& known = known_[i];
  const double count = static_cast<double>(waiting_) - missing_[i];
  if (count > 0) {
    const double offset = sum_[i] / count;
    const double mean = center_[i] + offset;
    const double variance = std::max(0.0, square_[i] / count - offset * offset);
    const double shown = center_[i] + as_they_came_[i] / count;
    const auto weight = [&](double window) { return count / (std::min(known.rows, window) + count); };
    known.now += weight(rows_of_recent) * (shown - known.now);
    for (auto [spread, window] : {std::pair(&known.recent, rows_of_recent), {&known.usual, rows_of_usual}})
      devices::merge_spread(spread->mean, spread->variance, mean, variance, weight(window));
    known.rows += count;
    known.until_next -= count;
    if (known.until_next <= 0) {
      known.before = known.rows <= 2 * rows_before ? known.usual : known.lately;
      known.lately = known.usual;
      known.until_next = rows_before;
    }
    known.distance = known.measured_distance();
    known.moved = known.distance > (known.moved ? far / 2 : far);
    bound(i);
  }
}

void FeatureDrift::bound(std::size_t i) {
  const Spread& usual = known_[i].usual;
  const bool clips = known_[i].rows >= rows_of_recent && usual.deviation() > 0;
  center_[i] = static_cast<float>(usual.mean);
  reach_[i] = clips ? std::min(unclipped, static_cast<float>(clipped_at * usual.deviation())) : unclipped;
}

bool FeatureDrift::stuck(std::size_t feature) const noexcept {
  return turns_[feature] >= enough_turns && known_[feature].rows >= 2 * rows_before &&
         still_[feature] >= rows_before && still_[feature] / much_longer >= longest_[feature];
}

FeatureDrift::Farthest FeatureDrift::farthest(std::size_t feature, const float* values, std::size_t rows,
                                              std::size_t columns) const noexcept {
  Farthest found;
  const Spread& usual = known_[feature].usual;
  double most = -1;
  for (std::size_t row = 0; row < rows; ++row) {
    const float x = values[row * columns + feature];
    const double away = std::abs(x - usual.mean);
    found.beyond += away > clipped_at * usual.deviation() ? 1 : 0;
    if (!(away > most)) continue;
    most = away;
    found.value = x;
  }
  return found;
}

std::string FeatureDrift::usual(std::size_t feature) const {
  const Spread& usual = known_[feature].usual;
  return fmt::format("{:.4g} ± {:.2g}", usual.mean, usual.deviation());
}

std::string FeatureDrift::describe(std::size_t feature) const {
  const Known& known = known_[feature];
  return fmt::format("{:.4g} now, {:.4g} ± {:.2g} before", known.now, known.before.mean,
                     known.before.deviation());
}

}  // namespace rivulet::runtime
