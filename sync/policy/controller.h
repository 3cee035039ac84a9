#pragma once
#include <cstdint>
#include <numbers>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/settings.h"
#include "sync/collective/aggregation.h"
#include "sync/message/plan.h"

namespace rivulet::sync::policy {

/// What a controller decides, in the order of the calls: each sees the proposals of earlier ones.
enum class Role : std::uint8_t {
  when,           ///< Decision::mode: whether the group synchronizes in this round
  batch,          ///< Schedule::rows, wait, whole, rest; defers a round
  transfer,       ///< Schedule::injection
  compression,    ///< Schedule::compressor, keep_ratio, payload_bytes; or the entry of `when` decides them
  collective,     ///< Schedule::collective
  learning_rate,  ///< Decision::learning_rate_factor
};
std::string_view name_of(Role role) noexcept;

/// One or several values that every device measures for a controller and sends with its facts.
struct FactField {
  std::string_view name;
  std::string_view help;
  std::uint32_t count = 1;
};

/// A value of a controller's memory that is shown to users unchanged.
struct Figure {
  std::string_view name;
  std::string_view help;
  std::size_t place = 0;  ///< index in the memory
};

/// Makes a controller a slow loop: it changes what others measure, and measures what they change.
struct SlowLoop {
  static constexpr std::size_t nowhere = SIZE_MAX;
  /// Rounds with an exchange after which the longest of its averages counts half. Null or 0: not a slow loop,
  /// never waits for others.
  double (*half_life)(const PolicyConfig& config) = nullptr;
  /// Index in the memory of the number of changes that others have to wait for (sync/policy/settling.h).
  std::size_t changes_at = nowhere;
};

/// For SlowLoop::half_life: half-life of a running mean with this weight of the newest value.
constexpr double half_life_of_mean(double weight) {
  return std::numbers::ln2 / weight;
}

/// Inputs of a controller.
struct Inputs {
  const FactsTable& table;
  const PolicyConfig& config;
  const Schedule& entered;   ///< schedule by which this round was entered
  std::uint64_t round = 0;   ///< number in the view
  std::size_t measured = 0;  ///< index of its first value in Facts::measurements
  bool settling = false;     ///< a slow loop must not change anything, nor average disturbed values
};

/// To add a controller, add a file sync/controllers/<role>/<name>.cpp that defines `const ControllerEntry
/// <role>_<name>`. The build finds it, and its keys become configuration keys.
struct ControllerEntry {
  Role role = Role::batch;
  std::string_view name;
  std::string_view help;
  /// Makes the decision of its role and explains it in RoundPlan::why. `memory`: as many values as requested
  /// below, 0 at first; part of the agreed state and the checkpoint. Uses only operations that round the same
  /// everywhere: + - * / and sqrt, but not log or exp, whose last bits depend on library and processor.
  void (*propose)(const Inputs& inputs, std::span<double> memory, RoundPlan& proposal);
  std::span<const Key> keys = {};
  std::span<const FactField> fact_fields = {};
  std::size_t memory = 0;
  std::span<const Figure> figures = {};
  /// Additional memory per device, by rank, after those values. When the members change, the remaining
  /// devices keep their values.
  std::size_t memory_per_rank = 0;
  SlowLoop slow = {};
  /// Whether, with these settings, devices contribute deltas of local steps instead of gradients; null:
  /// never.
  bool (*contributes_deltas)(const PolicyConfig& config) = nullptr;

  // For controllers of `when`:
  /// Can also decide the compression, and does if no controller of compression is configured
  /// (leaves_compression_to_when()).
  bool joint = false;
  /// Schedule::local_steps is the exact number of local steps, not a maximum, so their cost is predictable.
  bool plans_steps = false;
  /// Local steps per interval while rows are injected, if it chooses them; null: unchanged.
  double (*steps_with_injection)(const PolicyConfig& config) = nullptr;
  /// Whether local steps may overlap with a synchronization; null: never.
  bool (*overlaps)(const PolicyConfig& config) = nullptr;

  // For controllers of `transfer`:
  /// Weighs labels and injected rows against local steps. Without local steps the controller is omitted,
  /// and devices do not measure for it.
  bool weighs_local_steps = false;

  // For controllers of `compression`:
  /// The compressor of every round; null: the controller chooses.
  const std::string& (*compressor)(const Settings& settings) = nullptr;

  // For controllers of `batch`:
  bool fixed_rows = false;   ///< each batch has batch.rows
  bool fills_ticks = false;  ///< requests the rows that arrive within one batch.tick
  /// Explains the rows requested from a device with these facts, as text after a colon; null: no text.
  std::string (*why_rows)(const PolicyConfig& config, const Facts& facts, std::uint32_t asked) = nullptr;
};
std::span<const ControllerEntry* const> builtin_controllers() noexcept;
/// Configured value for `compression` without a separate controller: the controller of `when` decides, if it
/// can (ControllerEntry::joint); otherwise contributions are dense.
inline constexpr std::string_view decided_jointly = "auto";
inline bool leaves_compression_to_when(const PolicyConfig& config) {
  return config.compression_policy == decided_jointly;
}
/// Null if this build has no such controller.
const ControllerEntry* controller_named(Role role, std::string_view name) noexcept;
/// The controllers of a job, in the order of the calls.
using Controllers = std::vector<const ControllerEntry*>;

/// Configured value of a controller's key.
const PolicySetting& setting(const PolicyConfig& config, std::string_view key);
/// Configured values of a compressor's keys.
Settings compressor_settings(const PolicyConfig& config, const CompressorEntry& compressor);
/// Converts settings for controllers: keys of all controllers named in `config`, and of compressors if it
/// names a controller of compression.
std::vector<PolicySetting> settings_of(const PolicyConfig& config, const Settings& settings);
ContributionShape shape_of(const PolicyConfig& config);
/// Null if this build has no such collective, or if the name belongs to a controller that chooses among
/// several.
const AggregationEntry* collective_named(std::string_view name) noexcept;
/// Null if unknown in this build.
const CompressorEntry* compressor_named(std::string_view name) noexcept;
/// Default compressor of this slot kind for controllers that choose only the keep ratio.
const CompressorEntry& usual_compressor(SlotKind kind) noexcept;
/// Whether the collective `how` can sum this compressor's slots.
bool can_sum(const AggregationEntry& how, const CompressorEntry& compressor);
/// The collective that can sum the slots of any compressor.
const AggregationEntry& gathers_all() noexcept;
/// Replacement for a collective that cannot sum this compressor's slots.
const AggregationEntry& stand_in_for(const CompressorEntry& compressor) noexcept;
/// Whether the configured collective is a controller that chooses among several.
bool chooses_collective(const PolicyConfig& config);
/// Whether contributions and residuals are deltas of local steps instead of gradients, because a controller
/// named in `config` requires it.
bool exchanges_deltas(const PolicyConfig& config, std::span<const ControllerEntry* const> catalog);
/// Checks that everything the controllers read is present, for configurations and states of unknown origin.
/// Errors: bad_record.
Status check_policy(const PolicyConfig& config, const Controllers& controllers, const PolicyState& state);

/// The controllers that a configuration names, in order. Errors: invalid_config (unknown name).
Result<Controllers> controllers_of(const PolicyConfig& config,
                                   std::span<const ControllerEntry* const> catalog);
/// "when/auto": names are unique only within a role.
std::string name_of(const ControllerEntry& controller);
/// Agreed memory of a controller; null if it has none.
const std::vector<double>* memory_of(const PolicyState& state, const ControllerEntry& controller);
/// Number of values in Facts::measurements that these controllers need.
std::size_t measurements_of(const Controllers& controllers);

}  // namespace rivulet::sync::policy
