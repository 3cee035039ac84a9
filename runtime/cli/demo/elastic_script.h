#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cli/live_view.h"
#include "runtime/status/summary.h"

namespace rivulet::runtime::cli {

/// What the demo does to the devices of an elastic group, and when, in seconds after the group has formed.
struct ElasticPlan {
  std::size_t killed = 0;   ///< device whose plug is pulled; its partition passes to the newcomer
  std::size_t added = 0;    ///< index of the newcomer
  std::size_t stopped = 0;  ///< device that is requested to stop
  double kill_at = 0;
  double add_at = 0;
  double stop_at = 0;
};

/// Draws the two devices. The first device stays, since it measures the accuracy. `devices`: at least 3.
ElasticPlan plan_elastic(std::size_t devices, double seconds, std::uint64_t seed);

/// Decides when the next change is due, and measures what it cost the devices that stay. Every change is due
/// only after the group has continued from the one before. Owner: the main thread. Reads no clock.
class ElasticScript {
 public:
  enum class Act : std::uint8_t { none, kill, add, stop };
  explicit ElasticScript(const ElasticPlan& plan) : plan_(plan) {}

  /// Returns the last change once the group has continued from it, with its cost; once. Call with every new
  /// view, before next().
  std::optional<GroupChange> measure(const GroupView& view);
  /// Returns the change that must be made now; each only once.
  Act next(const GroupView& view);
  /// Changes made so far. The gap of a change is not_measured until the group has continued.
  [[nodiscard]] const std::vector<GroupChange>& changes() const noexcept { return changes_; }
  /// Whether the group has continued from all of them.
  [[nodiscard]] bool complete() const noexcept;

 private:
  [[nodiscard]] bool is_gone(std::size_t device) const;
  [[nodiscard]] std::optional<double> gap_in(const GroupView& view) const;
  Act begin(Act act, std::size_t device, const GroupView& view);

  const ElasticPlan plan_;
  std::vector<GroupChange> changes_;
  std::vector<double> gaps_before_;  ///< [device] time without a step before the change
  bool waits_ = false;               ///< the last change is not measured yet
};

/// "device-3 was killed for good; the others made no step for 310 ms"
std::string words_of_change(const GroupChange& change);

}  // namespace rivulet::runtime::cli
