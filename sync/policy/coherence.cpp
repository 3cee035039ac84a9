#include "sync/policy/coherence.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace rivulet::sync::policy {
namespace {

double rows_of(std::span<const Movement> movements) {
  double rows = 0;
  for (const Movement& m : movements) rows += m.rows;
  return rows;
}

/// |sum rho D|^2 / sum rho |D|^2; 0: nobody has moved.
double kappa(std::span<const Movement> movements, double rows) {
  std::vector<double> sum(movements.front().sketch.size());
  double alone = 0;
  for (const Movement& m : movements) {
    const double share = m.rows / rows;
    for (std::size_t i = 0; i < std::min(sum.size(), m.sketch.size()); ++i) {
      const double s = finite(m.sketch[i]);
      sum[i] += share * s;
      alone += share * s * s;
    }
  }
  double together = 0;
  for (const double s : sum) together += s * s;
  return alone > 0 ? together / alone : 0;
}

/// ... of one stream for all; 0: not known.
double kappa_of_alike(std::span<const Movement> movements, double rows) {
  double signal = 0;
  double noise_together = 0;
  double noise_alone = 0;
  for (const Movement& m : movements) {
    const double share = m.rows / rows;
    const double noise = finite(m.noise);
    signal += share * finite(m.signal);
    noise_together += share * share * noise;
    noise_alone += share * noise;
  }
  signal = std::max(0.0, signal);
  return noise_alone > 0 ? (signal + noise_together) / (signal + noise_alone) : 0;
}

}  // namespace

double coherence(std::span<const Movement> movements) {
  const double rows = rows_of(movements);
  if (rows <= 0) return 0;
  const double alike = kappa_of_alike(movements, rows);
  return alike > 0 ? finite(kappa(movements, rows) / alike) : 0;
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

double doublings(double x) {
  if (!(x > 1)) return 0;
  int exponent = 0;
  const double part = std::frexp(x, &exponent);  // x = part * 2^exponent, 0.5 <= part < 1
  return std::isfinite(x) ? exponent - 2 + 2 * part : 1024;
}

}  // namespace rivulet::sync::policy
