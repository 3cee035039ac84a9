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

/// Things that came to nothing, since the last one that did not.
struct BadRun {
  std::uint64_t count = 0;
  Duration lasting{};            ///< since the first of them
  Duration spread{};             ///< from the first of them to the last
  bool any_good = false;         ///< one before them, ever, was good
  std::string_view most_common;  ///< reason; empty: not known

  /// All of it was bad for so long that the next one will be, too: many, or some that came one by one, or all
  /// there ever were.
  [[nodiscard]] bool hopeless() const noexcept;
};

/// What conditions judge: one look at a device, and what is remembered of the looks before. Durations end
/// now.
struct VitalSigns {
  NodeState state = NodeState::starting;
  std::uint32_t world = 0;
  std::string phrase;

  // the stream
  std::string source_trouble;
  std::vector<TopicStatus> topics;
  struct Partition {
    PartitionStatus status;
    Duration standing{};  ///< its state, its offset and what is in its way are the same since
  };
  std::vector<Partition> partitions;
  std::vector<std::string> unclaimed;
  bool any_record = false;
  Duration silent{};       ///< since the last record, or since the first look; 0 while rows wait
  Duration longest_gap{};  ///< between two looks that found records
  BadRun refused;          ///< rows that the decoder refused, or that were truncated
  BadRun rowless;          ///< records without any row

  StreamFindings stream;  ///< of this device's own rows

  // training
  BadRun lost;                  ///< rows of batches that were not finite
  bool loss_finite = true;      ///< of the group
  std::optional<double> loss;   ///< of this device's own last rows
  std::optional<double> guess;  ///< ... of a model that knows nothing of them
  Duration diverged{};          ///< the loss is far above the guess, and does not come down
  Duration stalled{};           ///< rows wait, or own steps are made, and no round was applied
  Duration agreement_due{};     ///< from one agreement to the next, at the latest
  std::string control_trouble;
  std::string went_back;   ///< the model has diverged, and no state since is known to be good
  Duration unsaved{};      ///< since a state was to be saved, and none is on the disk
  Duration uncommitted{};  ///< since a state was saved that the group has not committed
};

/// One way not to be of use. To add one: an entry in the list of conditions.cpp, and what it judges in
/// VitalSigns. /readyz, page, `status`, the metric health_condition and the alerts on it follow.
struct Condition {
  std::string_view name;  ///< the metric's label
  Grade grade;
  /// Why it holds; empty: it does not.
  std::string (*phrase)(const VitalSigns&);
};

/// All of them, what explains most first.
std::span<const Condition> conditions() noexcept;

/// What holds of these. Pure.
Health judge(const VitalSigns& signs);

}  // namespace rivulet::runtime
