#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "sync/policy/controller.h"

namespace rivulet::runtime {

/// Of one share of the parameters: the gain that the recorded rounds had or exceeded as often as was asked.
struct GainThreshold {
  double keep = 1;
  double squared = 0;    ///< epsilon of a gate that goes by this gain; delta is 1 - epsilon
  double unsquared = 0;  ///< ... or by this one
};
struct GainThresholds {
  std::uint64_t rounds = 0;  ///< that told their gains
  std::vector<GainThreshold> shares;
};

/// From a decision log of a job with a gate (compression.policy two-point, gravac or moo): thresholds with
/// which a gate would have been open in the share `open` of its rounds. Those of a first run calibrate the
/// next: what is published fits other models, and another definition. Errors: io, bad_record, unavailable (no
/// round has gains).
Result<GainThresholds> gain_thresholds(const std::string& log, double open,
                                       std::span<const sync::policy::ControllerEntry* const> catalog);

}  // namespace rivulet::runtime
