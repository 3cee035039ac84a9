#include "sync/controllers/skew.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sync/policy/coherence.h"

namespace rivulet::sync::policy {
namespace {

using Shares = std::array<double, label_bins>;

/// Kullback-Leibler divergence in bits. `q` is positive wherever `p` is.
double divergence(const Shares& p, const Shares& q) {
  double sum = 0;
  for (std::size_t i = 0; i < label_bins; ++i)
    if (p[i] > 0) sum += p[i] * log2_of(p[i] / q[i]);
  return sum;
}

double distance(const Shares& p, const Shares& q) {
  Shares middle{};
  for (std::size_t i = 0; i < label_bins; ++i) middle[i] = (p[i] + q[i]) / 2;
  return std::sqrt(std::max(0.0, (divergence(p, middle) + divergence(q, middle)) / 2));
}

double rows_of(std::span<const double> counts) {
  double rows = 0;
  for (const double n : counts) rows += n;
  return rows;
}

Shares shares_of(std::span<const double> counts, double rows) {
  Shares shares{};
  for (std::size_t i = 0; i < counts.size(); ++i) shares[i % label_bins] += counts[i] / rows;
  return shares;
}

}  // namespace

double skew_of(std::span<const double> counts) {
  const double all = rows_of(counts);
  if (!(all > 0)) return 0;
  const Shares mixture = shares_of(counts, all);
  double sum = 0;
  std::size_t devices = 0;
  for (std::size_t at = 0; at < counts.size(); at += label_bins) {
    const auto of_device = counts.subspan(at, label_bins);
    const double rows = rows_of(of_device);
    if (rows <= 0) continue;
    ++devices;
    sum += rows / all * distance(shares_of(of_device, rows), mixture);
  }
  return devices > 1 ? std::min(1.0, sum) : 0;
}

}  // namespace rivulet::sync::policy
