#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "sync/policy/controller.h"

namespace rivulet::runtime {

/// Thresholds at one keep ratio: the gain that the requested share of the recorded rounds reached.
struct GainThreshold {
  double keep = 1;
  double squared = 0;    ///< epsilon of a gate on the squared gain; delta is 1 - epsilon
  double unsquared = 0;  ///< epsilon of a gate on the unsquared gain
};
struct GainThresholds {
  std::uint64_t rounds = 0;  ///< rounds that contain gains
  std::vector<GainThreshold> shares;
};

/// Reads a decision log of a job with a gate (compression.policy two-point, gravac or moo). Returns the
/// thresholds at which the gate would have been open in the share `open` of its rounds. Thresholds measured
/// in a first run calibrate the next one. Published thresholds were measured on other models and use a
/// different definition. Errors: io, bad_record, unavailable (no round has gains).
Result<GainThresholds> gain_thresholds(const std::string& log, double open,
                                       std::span<const sync::policy::ControllerEntry* const> catalog);

}  // namespace rivulet::runtime
