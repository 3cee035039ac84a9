#pragma once
#include <string>
#include <vector>

namespace rivulet::runtime {

/// One of the standard process metrics, which every Prometheus client library exports under the same names.
struct ProcessMetric {
  std::string name;  ///< without our prefix
  std::string help;
  bool counter = false;
  double value = 0;
};
/// Reads the metrics from /proc. Omits unreadable ones.
std::vector<ProcessMetric> read_process_metrics();

/// Returns the seconds since the program was started, so that "exec to first step" includes loading its
/// libraries; 0 if unreadable.
double process_age_seconds();

}  // namespace rivulet::runtime
