#pragma once
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

/// Medians with their spread, for all benchmarks.
namespace rivulet::bench {

/// Returns the quantile `share` of the values, with linear interpolation between neighbours; 0 without
/// values.
inline double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - std::floor(place));
}

/// "1.25 % (p10 1.10, p90 1.52), n = 60"
inline std::string spread(const std::vector<double>& values, const char* unit) {
  return fmt::format("{:.3g} {} (p10 {:.3g}, p90 {:.3g}), n = {}", percentile(values, 0.5), unit,
                     percentile(values, 0.1), percentile(values, 0.9), values.size());
}

/// Returns the ratios within each round, for values measured in turns.
inline std::vector<double> ratios(const std::vector<double>& of, const std::vector<double>& to) {
  std::vector<double> all;
  for (std::size_t i = 0; i < std::min(of.size(), to.size()); ++i) all.push_back(of[i] / to[i]);
  return all;
}

/// Returns how often the calling thread was preempted.
inline long involuntary_switches() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_nivcsw;
}

}  // namespace rivulet::bench
