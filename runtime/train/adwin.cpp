#include "runtime/train/adwin.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace rivulet::runtime {
namespace {

double values_in(std::size_t row) {
  return static_cast<double>(std::uint64_t{1} << row);
}

}  // namespace

Adwin::Adwin(double delta, Limits limits) : delta_(delta), limits_(limits) {
  RIVULET_CHECK(delta > 0 && delta < 1 && limits.clock > 0 && limits.least_window > 0,
                "invalid limits of ADWIN");
}

void Adwin::Row::drop(std::size_t oldest) {
  std::move(buckets.begin() + static_cast<std::ptrdiff_t>(oldest),
            buckets.begin() + static_cast<std::ptrdiff_t>(count), buckets.begin());
  count -= oldest;
}

double Adwin::mean() const noexcept {
  return window_.width == 0 ? 0 : window_.sum / static_cast<double>(window_.width);
}

double Adwin::variance() const noexcept {
  return window_.width == 0 ? 0 : std::max(0.0, window_.squares) / static_cast<double>(window_.width);
}

bool Adwin::add(double value) {
  if (!std::isfinite(value)) return false;
  if (detected_) window_ = Window{};
  detected_ = false;
  insert(value);
  if (++window_.added % limits_.clock != 0 || window_.width <= limits_.grace) return false;
  for (double changed = change(); changed != 0; changed = change()) {
    if (!detected_) rose_ = changed > 0;
    if (!detected_) sides_ = clearest();
    detected_ = true;
    drop_oldest();
  }
  return detected_;
}

void Adwin::insert(double value) {
  if (window_.width > 0) {
    const double before = static_cast<double>(window_.width);
    const double away = value - window_.sum / before;
    window_.squares += before * away * away / (before + 1);
  }
  ++window_.width;
  window_.sum += value;
  window_.rows[0].push({value, 0});
  merge_full_rows();
}

void Adwin::merge_full_rows() {
  for (std::size_t i = 0; window_.rows[i].count > most_alike; ++i) {
    RIVULET_CHECK(i + 1 < sizes, "more values than bucket sizes");
    const Bucket& older = window_.rows[i].buckets[0];
    const Bucket& newer = window_.rows[i].buckets[1];
    const double values = values_in(i);
    const double apart = older.sum / values - newer.sum / values;
    window_.rows[i + 1].push(
        {older.sum + newer.sum, older.squares + newer.squares + values * 0.5 * apart * apart});
    window_.rows[i].drop(2);
    window_.used = std::max(window_.used, i + 2);
  }
}

void Adwin::drop_oldest() {
  Row& row = window_.rows[window_.used - 1];
  const Bucket bucket = row.buckets[0];
  const auto values = std::uint64_t{1} << (window_.used - 1);
  window_.width -= values;
  window_.sum -= bucket.sum;
  const double n = static_cast<double>(values);
  const double kept = static_cast<double>(window_.width);
  const double apart = bucket.sum / n - window_.sum / kept;
  window_.squares -= bucket.squares + n * kept * apart * apart / (n + kept);
  row.drop(1);
  if (row.count == 0) --window_.used;
}

template <class Visit>
void Adwin::visit_places(const Visit& visit) const {
  double older = 0;
  double newer = static_cast<double>(window_.width);
  double older_sum = 0;
  double newer_sum = window_.sum;
  const double width = static_cast<double>(window_.width);
  const double doubt = std::log(2 * std::log(width) / delta_);
  for (std::size_t i = window_.used; i-- > 0;) {
    const Row& row = window_.rows[i];
    for (std::size_t k = 0; k < row.count; ++k) {
      older += values_in(i);
      newer -= values_in(i);
      older_sum += row.buckets[k].sum;
      newer_sum -= row.buckets[k].sum;
      // Also ends the loop where the newer side is empty.
      if (newer < limits_.least_window) return;
      if (older < limits_.least_window) continue;
      if (visit(Sides{older_sum / older, newer_sum / newer}, bound(older, newer, doubt))) return;
    }
  }
}

double Adwin::change() const {
  double found = 0;
  visit_places([&](const Sides& sides, double bound) {
    const double risen = sides.newer - sides.older;
    const bool differs = std::abs(risen) > bound;
    if (differs) found = risen;
    return differs;
  });
  return found;
}

Adwin::Sides Adwin::clearest() const {
  Sides found;
  double most = 0;
  visit_places([&](const Sides& sides, double bound) {
    const double times = std::abs(sides.newer - sides.older) / bound;
    if (times > most) found = sides;
    most = std::max(most, times);
    return false;
  });
  return found;
}

/// Returns the maximum difference between the means of the two sides that chance explains. NaN if rounding
/// has made the sum of squares negative after buckets were dropped; no difference exceeds NaN.
double Adwin::bound(double older, double newer, double doubt) const {
  const double width = static_cast<double>(window_.width);
  const double few = 1 / (older - limits_.least_window + 1) + 1 / (newer - limits_.least_window + 1);
  return std::sqrt(2 * few * (window_.squares / width) * doubt) + 2.0 / 3.0 * doubt * few;
}

}  // namespace rivulet::runtime
