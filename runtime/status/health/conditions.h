#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/record.h"
#include "core/time.h"
#include "runtime/status/health/health.h"
#include "runtime/status/node_status.h"

namespace rivulet::runtime {

/// A run of failures since the last success.
struct BadRun {
  std::uint64_t count = 0;
  Duration lasting{};            ///< time since the first failure
  Duration spread{};             ///< time from the first failure to the last
  bool any_good = false;         ///< there was at least one success before the run
  std::string_view most_common;  ///< most common reason; empty if unknown

  /// Whether the run is so long that the next item will probably fail, too: many failures, failures spread
  /// over time, or no success so far.
  [[nodiscard]] bool hopeless() const noexcept;
};

/// The input of conditions: one snapshot of a device, and results from earlier snapshots. Durations are
/// counted up to now.
struct VitalSigns {
  NodeState state = NodeState::starting;
  std::uint32_t world = 0;
  std::string phrase;

  // the stream
  std::string source_trouble;
  std::vector<TopicStatus> topics;
  struct Partition {
    PartitionStatus status;
    Duration standing{};  ///< time since its state, offset or obstacle changed
  };
  std::vector<Partition> partitions;
  std::vector<std::string> unclaimed;
  bool any_record = false;
  Duration silent{};       ///< time since the last record or the first check; 0 while rows wait
  Duration longest_gap{};  ///< maximum time between two checks that found records
  BadRun refused;          ///< rows rejected by the decoder, or truncated
  BadRun rowless;          ///< records without rows

  StreamFindings stream;  ///< findings about this device's own rows

  // training
  BadRun lost;                  ///< rows of non-finite batches
  bool loss_finite = true;      ///< group's loss
  std::optional<double> loss;   ///< mean over this device's own last rows
  std::optional<double> guess;  ///< loss of a constant guess on the same rows
  Duration diverged{};          ///< time with the loss far above the guess and not falling
  Duration stalled{};           ///< time with waiting rows or local steps, but without an applied round
  Duration sync_due{};          ///< maximum time between two synchronizations
  std::string control_trouble;
  std::string rolled_back;  ///< set after a rollback, until a later state is known to be good
  Duration unsaved{};       ///< time since a save was due, while nothing has reached the disk
  Duration uncommitted{};   ///< time since the oldest saved state that the group has not committed
};

/// One reason why a device is not useful. To add a condition, add an entry to the list in conditions.cpp, and
/// its inputs to VitalSigns. /readyz, page, `status`, the metric health_condition and its alerts then include
/// it.
struct Condition {
  std::string_view name;  ///< label of the metric
  Grade grade;
  /// Returns why the condition holds; empty if it does not.
  std::string (*phrase)(const VitalSigns&);
  bool of_state = false;  ///< its phrase is that of the device's state
};

/// Returns all conditions. Those that explain others come first.
std::span<const Condition> conditions() noexcept;

/// Whether a condition only repeats the phrase of the device's state; false if there is none of that name.
bool is_phrase_of_state(std::string_view condition) noexcept;

/// Returns the conditions that hold. Pure.
Health judge(const VitalSigns& signs);

}  // namespace rivulet::runtime
