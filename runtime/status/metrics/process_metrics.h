#pragma once
#include <string>
#include <vector>

namespace rivulet::runtime {

/// One reading of the process set that every Prometheus client exports under the same names.
struct ProcessMetric {
  std::string name;  ///< without any prefix of ours
  std::string help;
  bool counter = false;
  double value = 0;
};
/// From /proc; what cannot be read is left out.
std::vector<ProcessMetric> read_process_metrics();

/// Since the program was started, so that "exec to first step" includes loading its libraries; 0 where it
/// cannot be read.
double process_age_seconds();

}  // namespace rivulet::runtime
