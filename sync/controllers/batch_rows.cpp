#include "sync/controllers/batch_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rivulet::sync::policy {
namespace {

/// Splits `total` into fractional rows within the bounds. Each pass sets devices that violate a bound to it,
/// in the direction with the larger violation; the others share the rest.
std::vector<double> water_filled(std::span<const double> shares, double total,
                                 std::span<const RowBounds> bounds) {
  const std::size_t n = shares.size();
  std::vector<double> rows(n);
  std::vector<bool> fixed(n);
  for (std::size_t pass = 0; pass < n; ++pass) {
    double left = total;
    double open = 0;
    for (std::size_t i = 0; i < n; ++i) (fixed[i] ? left : open) += fixed[i] ? -rows[i] : shares[i];
    double above = 0;
    double below = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (fixed[i]) continue;
      rows[i] = open > 0 ? std::max(0.0, left) * shares[i] / open : 0;
      above += std::max(0.0, rows[i] - bounds[i].most);
      below += std::max(0.0, bounds[i].least - rows[i]);
    }
    if (above == 0 && below == 0) break;
    for (std::size_t i = 0; i < n; ++i) {
      if (fixed[i]) continue;
      const double bound = above >= below ? bounds[i].most : bounds[i].least;
      if (above >= below ? rows[i] < bound : rows[i] > bound) continue;
      rows[i] = bound;
      fixed[i] = true;
    }
  }
  for (std::size_t i = 0; i < n; ++i) rows[i] = std::clamp<double>(rows[i], bounds[i].least, bounds[i].most);
  return rows;
}

}  // namespace

std::vector<std::uint32_t> share_rows(std::span<const double> shares, std::uint64_t total,
                                      std::span<const RowBounds> bounds) {
  const std::vector<double> wanted = water_filled(shares, static_cast<double>(total), bounds);
  std::vector<std::uint32_t> rows;
  rows.reserve(wanted.size());
  for (const double w : wanted) rows.push_back(static_cast<std::uint32_t>(w));
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return wanted[i] - rows[i]; });
  const auto sum = std::accumulate(rows.begin(), rows.end(), std::uint64_t{0});
  auto left = static_cast<std::uint64_t>(std::llround(
      std::max(0.0, std::min(static_cast<double>(total), std::accumulate(wanted.begin(), wanted.end(), 0.0)) -
                        static_cast<double>(sum))));
  for (const std::size_t i : order)
    if (left > 0 && rows[i] < bounds[i].most && wanted[i] > rows[i]) {
      ++rows[i];
      --left;
    }
  return rows;
}

bool differ_by_half(double one, double other) {
  return one >= 1.5 * other || other >= 1.5 * one;
}

bool is_another_batch(double rows, double& usual) {
  constexpr double weight = 0.1;
  const bool another = usual > 0 && differ_by_half(rows, usual);
  usual = another || usual == 0 ? rows : usual + weight * (rows - usual);
  return another;
}

void wait_for_all(const FactsTable& table, RoundPlan& plan) {
  plan.next.whole = true;
  if (!any_flag(table, flag_incomplete) || plan.now.mode != Mode::gradients) return;
  plan.now.mode = Mode::defer;
  plan.why = "waiting until every device has the rows of its batch";
}

}  // namespace rivulet::sync::policy
