#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/decisions/decision.h"

namespace rivulet::runtime {

/// One device's part in a round. Times in seconds.
struct DevicePart {
  std::string id;
  std::uint64_t rows = 0;
  std::optional<std::uint32_t>
      requested;      ///< rows requested by the round before; none if that is not in the log
  double weight = 0;  ///< the device's share of the step
  double rows_per_s = 0;
  std::uint64_t waiting_rows = 0;  ///< rows in the device's buffer, without those of this round
  double wait_s = 0;  ///< time from the end of the previous round until the device's rows were complete
  double compute_s = 0;
  double spare_s = 0;            ///< time between its readiness and that of the last device
  std::optional<double> sync_s;  ///< time from the last readiness to the step; none if not in the log
  std::uint32_t next_rows = 0;   ///< rows requested for the next round
};

/// Explanation of a round for users who do not know the controllers.
struct RoundExplanation {
  std::uint64_t view = 0;
  std::uint64_t round = 0;
  std::uint64_t step = 0;  ///< before the round
  std::uint64_t rows = 0;
  std::string mode;  ///< in words: "deltas averaged", "deferred"
  std::string policy;
  std::string why;   ///< the plan's own phrase
  std::string last;  ///< device that was ready last; empty if all were ready together or none had rows
  std::vector<DevicePart> devices;
  std::vector<std::string> sentences;  ///< the two or three most important ones come first
};

/// Explains `round`. `before` and `after`: its neighbours in the same view; null if unknown. Pure.
RoundExplanation explain_round(const ViewRecord& view, const RoundRecord* before, const RoundRecord& round,
                               const RoundRecord* after);

}  // namespace rivulet::runtime
