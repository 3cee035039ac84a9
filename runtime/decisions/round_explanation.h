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
  std::optional<std::uint32_t> asked;  ///< by the round before; none: that is not in the log
  double weight = 0;                   ///< its share of the step
  double rows_per_s = 0;
  std::uint64_t waiting_rows = 0;  ///< in its buffer, besides those it brought
  double wait_s = 0;               ///< from the end of the round before until its rows were there
  double compute_s = 0;
  double spare_s = 0;             ///< it was ready this long before the last one
  std::optional<double> agree_s;  ///< from there to the agreed step; none: the next round is not in the log
  std::uint32_t next_rows = 0;    ///< it is asked to bring next
};

/// Why a round did what it did, for a person who did not write the controllers.
struct RoundExplanation {
  std::uint64_t view = 0;
  std::uint64_t round = 0;
  std::uint64_t step = 0;  ///< before it
  std::uint64_t rows = 0;
  std::string mode;  ///< in words: "movements averaged", "deferred"
  std::string policy;
  std::string why;   ///< the plan's own phrase
  std::string last;  ///< device that was ready last; empty: all at once, or nobody had rows
  std::vector<DevicePart> devices;
  std::vector<std::string> sentences;  ///< the two or three that say most come first
};

/// `before` and `after` are the neighbours in the same view, if they are known. Pure.
RoundExplanation story_of(const ViewRecord& view, const RoundRecord* before, const RoundRecord& round,
                          const RoundRecord* after);

}  // namespace rivulet::runtime
