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

/// What a controller decides, in the order in which they are asked: each sees what those before it proposed.
enum class Role : std::uint8_t {
  when,           ///< Decision::mode: whether the group agrees in this round
  batch,          ///< Schedule::rows, wait, whole, rest; holds a round
  transfer,       ///< Schedule::copies, guests
  compression,    ///< Schedule::compressor, keep_ratio, payload_bytes; or the entry of `when` decides them
  collective,     ///< Schedule::collective
  learning_rate,  ///< Decision::learning_rate_factor
};
std::string_view name_of(Role role) noexcept;

/// A number, or several, that a controller wants every device to measure and send with its facts.
struct FactField {
  std::string_view name;
  std::string_view help;
  std::uint32_t count = 1;
};

/// A number of its memory that a controller shows to people, as it stands.
struct Figure {
  std::string_view name;
  std::string_view help;
  std::size_t place = 0;  ///< in its memory
};

/// What makes a controller a slow loop: it changes what others measure, and measures what they change.
struct SlowLoop {
  static constexpr std::size_t nowhere = SIZE_MAX;
  /// Rounds that exchange something after which the longest of its averages counts half; null, or 0: it is
  /// no slow loop, and never waits for others.
  double (*half_life)(const PolicyConfig& config) = nullptr;
  /// In its memory: how often it has changed what others measure. They wait then (sync/policy/settling.h).
  std::size_t changes_at = nowhere;
};

/// For SlowLoop::half_life: of a running mean in which the newest value has this weight.
constexpr double half_life_of_mean(double weight) {
  return std::numbers::ln2 / weight;
}

/// What a controller may read.
struct Inputs {
  const FactsTable& table;
  const PolicyConfig& config;
  const Schedule& entered;   ///< how this round was entered
  std::uint64_t round = 0;   ///< of the view
  std::size_t measured = 0;  ///< its first number in Facts::measurements
  bool settling = false;     ///< a slow loop stays where it is, and averages nothing that is disturbed
};

/// To add a controller, add a file sync/policy/<role>/<name>.cpp that defines
/// `const ControllerEntry <role>_<name>`; the build finds it, and its keys are configuration keys.
struct ControllerEntry {
  Role role = Role::batch;
  std::string_view name;
  std::string_view help;
  /// Sets what its role decides, and RoundPlan::why if it has something to say. `memory`: as many numbers as
  /// it asks for, 0 at first; agreed, and in the checkpoint. By operations that are rounded the same
  /// everywhere alone: + - * / and sqrt, not log or exp, of which libraries and processors have their own
  /// last bits.
  void (*propose)(const Inputs& inputs, std::span<double> memory, RoundPlan& proposal);
  std::span<const Key> keys = {};
  std::span<const FactField> fact_fields = {};
  std::size_t memory = 0;
  std::span<const Figure> figures = {};
  /// Behind them as many numbers for each device, rank by rank. A view of other members keeps what is
  /// remembered of those that stay.
  std::size_t memory_per_rank = 0;
  SlowLoop slow = {};
  /// Whether, set so, it has devices contribute how far they have come on copies of their own, and not
  /// gradients; null: it does not.
  bool (*contributes_deltas)(const PolicyConfig& config) = nullptr;

  // Of a controller of `when`:
  /// It can decide the compression, too, and does where no controller of compression is named
  /// (leaves_compression_to_when()).
  bool joint = false;
  /// Schedule::own_steps is how many devices make, not only the most: what they cost can be told before.
  bool plans_steps = false;
  /// Local steps between two agreements while devices compute on copies of others' rows, where it chooses
  /// them; null: as it always does.
  double (*steps_with_copies)(const PolicyConfig& config) = nullptr;
  /// Whether steps may be made while the group agrees; null: they are not.
  bool (*overlaps)(const PolicyConfig& config) = nullptr;

  // Of a controller of `transfer`:
  /// It goes by labels and weighs rows against local steps: where there are none of these, it is left out,
  /// and nobody measures for it.
  bool weighs_local_steps = false;

  // Of a controller of `compression`:
  /// The compressor of every round; null: it chooses.
  const std::string& (*compressor)(const Settings& settings) = nullptr;

  // Of a controller of `batch`:
  bool fixed_rows = false;   ///< each batch has batch.rows
  bool fills_ticks = false;  ///< it asks for what comes in a batch.tick
  /// Why it asked a device with these facts for its rows, behind a colon; null: not explained.
  std::string (*why_rows)(const PolicyConfig& config, const Facts& facts, std::uint32_t asked) = nullptr;
};
std::span<const ControllerEntry* const> builtin_controllers() noexcept;
/// What a configuration says for the role `compression` that has no controller of its own: the controller of
/// `when` decides it, if it can (ControllerEntry::joint); else all is sent.
inline constexpr std::string_view decided_jointly = "auto";
inline bool leaves_compression_to_when(const PolicyConfig& config) {
  return config.compression_policy == decided_jointly;
}
/// Of this build; null: nothing has this name.
const ControllerEntry* controller_named(Role role, std::string_view name) noexcept;
/// Those of a job, in the order in which they are asked.
using Controllers = std::vector<const ControllerEntry*>;

/// What is set for a key of a controller's entry.
const PolicySetting& setting(const PolicyConfig& config, std::string_view key);
/// What is set for the keys of a compressor.
Settings compressor_settings(const PolicyConfig& config, const CompressorEntry& compressor);
/// Settings as controllers read them, of the keys of all controllers that `config` names, and of compressors
/// if it names a controller of those.
std::vector<PolicySetting> settings_of(const PolicyConfig& config, const Settings& settings);
ContributionShape shape_of(const PolicyConfig& config);
/// Sums what has this name; null: nothing in this build, or a controller that chooses among several.
const AggregationEntry* collective_named(std::string_view name) noexcept;
/// The compressor of this name; null: nothing in this build.
const CompressorEntry* compressor_named(std::string_view name) noexcept;
/// The compressor that sends slots of this kind where a controller chooses how much to send.
const CompressorEntry& usual_compressor(SlotKind kind) noexcept;
/// Whether `how` can sum what this compressor sends.
bool can_sum(const AggregationEntry& how, const CompressorEntry& compressor);
/// The collective that sums whatever a compressor sends.
const AggregationEntry& gathers_all() noexcept;
/// The collective in place of one that cannot sum what this compressor sends.
const AggregationEntry& stand_in_for(const CompressorEntry& compressor) noexcept;
/// What the configuration names is a controller that chooses among several.
bool chooses_collective(const PolicyConfig& config);
/// Contributions are movements behind own steps, and residuals are left of those; else of gradients: one of
/// the controllers that `config` names has it so.
bool agrees_on_movements(const PolicyConfig& config, std::span<const ControllerEntry* const> catalog);
/// Is all there that the controllers read? For configurations and states that anybody may have written.
/// Errors: bad_record.
Status check_policy(const PolicyConfig& config, const Controllers& controllers, const PolicyState& state);

/// The controllers that a configuration names, in order. Errors: invalid_config (a name that is not there).
Result<Controllers> controllers_of(const PolicyConfig& config,
                                   std::span<const ControllerEntry* const> catalog);
/// "when/auto": of one role there may be one of the same name as of another.
std::string name_of(const ControllerEntry& controller);
/// What one of them remembers; null: nothing.
const std::vector<double>* memory_of(const PolicyState& state, const ControllerEntry& controller);
/// Numbers in Facts::measurements that they want.
std::size_t measurements_of(const Controllers& controllers);

}  // namespace rivulet::sync::policy
