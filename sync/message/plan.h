#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/record.h"
#include "core/time.h"
#include "sync/message/facts.h"

/// Plans that all devices compute from the facts of a round, as plain values. Made by sync/policy/arbiter.h,
/// recorded in decision logs.
namespace rivulet::sync::policy {

enum class Mode : std::uint8_t {
  gradients,  ///< weighted gradients are summed, and all step with the sum
  delta,      ///< deltas since the last aggregating round are summed (after local steps)
  defer,      ///< no device steps; batches and gradients are kept for the next round
  idle,       ///< no device has rows; nothing changes
  skip,       ///< rows are consumed but nothing is applied (non-finite, dry run)
};
std::string_view name_of(Mode mode) noexcept;

/// How contributions are encoded and summed.
struct Way {
  std::string collective = "gather";  ///< catalog name
  std::string compressor = "dense";   ///< catalog name
  double keep_ratio = 1.0;            ///< target share of a contribution's elements for the compressor
  std::uint64_t payload_bytes = 0;  ///< exact size per device: the compressor's slot and the model's buffers
  bool operator==(const Way&) const = default;
};
constexpr void fields(Either<Way> auto& w, auto&& visit) {
  visit("collective", w.collective);
  visit("compressor", w.compressor);
  visit("keep_ratio", w.keep_ratio);
  visit("payload_bytes", w.payload_bytes);
}

/// Response of the group to a diverged model (sync/policy/divergence.h).
enum class Retreat : std::uint8_t {
  none,
  roll_back,  ///< all leave the view and begin the next one with a good state
  give_up,    ///< rolling back has failed: all stop
};
std::string_view name_of(Retreat retreat) noexcept;

/// The decision on the round whose facts were just gathered.
struct Decision {
  Mode mode = Mode::idle;
  std::vector<double> weights;  ///< [N], sums to 1, or to 0 if no device has rows
  double learning_rate_factor = 1.0;
  bool checkpoint = false;             ///< all devices save the agreed state after this round
  bool stop = false;                   ///< all devices stop after this round, with exit code 0
  std::vector<std::uint32_t> leaving;  ///< ranks that stop after this round
  bool regroup = false;                ///< all end the view after this round, so that devices can join
  /// Exchange of a gated round's contributions, replacing Schedule::way; only in gated rounds.
  std::optional<Way> way;
  Retreat retreat = Retreat::none;
  std::uint64_t back_lineage = 0;  ///< lineage of the state to roll back to
  std::uint64_t back_step = 0;     ///< step of that state; 0: the initial model of the job
  bool operator==(const Decision&) const = default;
};
constexpr void fields(Either<Decision> auto& d, auto&& visit) {
  visit("mode", d.mode);
  visit("weights", d.weights);
  visit("learning_rate_factor", d.learning_rate_factor);
  visit("checkpoint", d.checkpoint);
  visit("stop", d.stop);
  visit("leaving", d.leaving);
  visit("regroup", d.regroup);
  visit("way", d.way);
  visit("retreat", d.retreat);
  visit("back_lineage", d.back_lineage);
  visit("back_step", d.back_step);
}

/// Condition for an early synchronization (published/when/selsync.cpp): the smoothed squared gradient norm of
/// a device changes by more than `change` from one step to the next.
struct EarlySync {
  double change = 0;       ///< relative
  double norm_weight = 1;  ///< weight of the newest norm in the mean
  bool operator==(const EarlySync&) const = default;
};
constexpr void fields(Either<EarlySync> auto& c, auto&& visit) {
  visit("change", c.change);
  visit("norm_weight", c.norm_weight);
}

/// Devices step on their own copies and exchange deltas instead of gradients. A device sends nothing until it
/// has made `steps` steps. Each step starts within Schedule::wait after the last one, or counts as made.
/// Schedule::rows counts the rows of one step.
struct LocalSchedule {
  std::uint32_t steps = 1;
  Duration time{};       ///< maximum time since the last synchronization; 0: no limit
  Duration latest{};     ///< time since the last synchronization after which a device is late
  bool overlap = false;  ///< steps of the next round begin during this synchronization
  std::optional<EarlySync> early;
  bool operator==(const LocalSchedule&) const = default;
};
constexpr void fields(Either<LocalSchedule> auto& l, auto&& visit) {
  visit("steps", l.steps);
  visit("time_ns", l.time);
  visit("latest_ns", l.latest);
  visit("overlap", l.overlap);
  visit("early", l.early);
}

/// Rows that each rank sends to every other rank with its facts, different ones to each if it has enough. The
/// owner trains and announces them; the others also compute on them.
struct Injection {
  std::vector<std::uint32_t> rows;  ///< [N]
  double per_row = 0;               ///< newest injected rows in a step, per row of the device's own stream
  bool operator==(const Injection&) const = default;
};
constexpr void fields(Either<Injection> auto& i, auto&& visit) {
  visit("rows", i.rows);
  visit("per_row", i.per_row);
}

/// When devices enter the next round and how they exchange contributions; known before the round's facts are
/// sent.
struct Schedule {
  std::vector<std::uint32_t> rows;  ///< [N] rows to collect; 0: enter immediately
  Duration wait{};                  ///< maximum time to enter after the end of the previous round
  bool whole = false;               ///< a device without all its rows enters with none and flag_incomplete
  bool rest = false;  ///< no rows expected: enter on own rows, on a peer's entry, or after `wait`
  Way way;
  /// The way depends on the facts of the round (Decision::way); `way` is the most likely one. So
  /// contributions wait for the plan.
  bool gated = false;
  bool flush =
      false;  ///< a device leaves after this round: contributions are dense, so its residual is not lost
  bool freeze = false;                 ///< slow loops must not change anything (profiling)
  std::optional<LocalSchedule> local;  ///< none: the group averages the gradients of one batch per device
  std::optional<Injection> injection;
  bool operator==(const Schedule&) const = default;

  /// Whether the momentum of sent elements is cleared after each step (DGC, Lin et al. 2018). Otherwise the
  /// same direction would be sent again before the group has responded.
  [[nodiscard]] bool masks_momentum() const noexcept { return local && local->steps == 1; }
  /// Local steps of a round, minimum 1.
  [[nodiscard]] std::uint32_t steps() const noexcept { return local ? local->steps : 1; }
  [[nodiscard]] bool overlaps() const noexcept { return local && local->overlap; }
  [[nodiscard]] Duration latest() const noexcept { return local ? local->latest : Duration(0); }
  /// Weight of the newest norm in the mean for early synchronizations.
  [[nodiscard]] double norm_weight() const noexcept {
    return local && local->early ? local->early->norm_weight : 1;
  }
  /// Injected rows in a step, per row of the device's own stream.
  [[nodiscard]] double injected_per_row() const noexcept { return injection ? injection->per_row : 0; }
  /// Rows that this rank sends to the others.
  [[nodiscard]] std::uint32_t injected_by(std::uint32_t rank) const noexcept {
    return injection && rank < injection->rows.size() ? injection->rows[rank] : 0;
  }
};
constexpr void fields(Either<Schedule> auto& s, auto&& visit) {
  visit("rows", s.rows);
  visit("wait_ns", s.wait);
  visit("whole", s.whole);
  visit("rest", s.rest);
  visit("way", s.way);
  visit("gated", s.gated);
  visit("flush", s.flush);
  visit("freeze", s.freeze);
  visit("local", s.local);
  visit("injection", s.injection);
}

/// The plan of a round: the decision on it and the schedule of the next.
struct RoundPlan {
  Decision now;
  Schedule next;
  std::string why;  ///< one phrase for users and the decision log
  bool operator==(const RoundPlan&) const = default;
};
constexpr void fields(Either<RoundPlan> auto& p, auto&& visit) {
  visit("now", p.now);
  visit("next", p.next);
  visit("why", p.why);
}
/// For Facts::plan_hash: equal for equal plans of equal tables (their hash_of). The hash covers the table, so
/// the next round confirms every fact of this one, including those that no plan depends on.
std::uint64_t hash_of(const RoundPlan& plan, std::uint64_t table_hash);

/// Configured value of a controller's key, as text or number. Booleans are 0 or 1, durations are seconds.
struct PolicySetting {
  std::string name;
  std::string text;
  double number = 0;
  bool operator==(const PolicySetting&) const = default;
};
constexpr void fields(Either<PolicySetting> auto& s, auto&& visit) {
  visit("name", s.name);
  visit("text", s.text);
  visit("number", s.number);
}

struct PolicyConfig {
  std::string sync_policy = "every";
  std::string batch_policy = "stream";
  std::string compression_policy = "none";
  std::string learning_rate_policy = "none";  ///< none: constant learning rate
  std::string transfer_policy = "none";       ///< none: no injected rows
  std::uint32_t rows = 64;
  std::uint32_t min = 1;
  std::uint32_t max = 1024;
  Duration tick = std::chrono::milliseconds(100);
  Duration max_wait = std::chrono::milliseconds(200);
  Duration idle_wait_max = std::chrono::seconds(1);
  std::string collective = "gather";       ///< catalog name, or "auto": chosen for the group
  std::uint64_t contribution_bytes = 0;    ///< (P + B) * bytes per element
  std::vector<std::uint64_t> tensors;      ///< elements of each parameter tensor
  std::vector<std::uint64_t> tensor_rows;  ///< first dimension of each tensor
  std::uint64_t buffers = 0;               ///< B
  std::uint32_t number_bytes = 4;
  bool momentum_adds_up = false;  ///< the optimizer's state is a sum of gradients: devices may keep parts
  std::uint64_t checkpoint_rounds = 0;   ///< applied rounds between two checkpoints; 0: only on request
  std::string on_divergence = "ignore";  ///< "roll_back": roll back to a good checkpoint
  bool changes_size = false;             ///< the group continues without a device that leaves
  std::uint32_t devices = 0;             ///< usual size of the group (job.devices.wanted); 0: its members
  std::vector<PolicySetting> settings;   ///< values of the controllers' keys
  bool operator==(const PolicyConfig&) const = default;
};
constexpr void fields(Either<PolicyConfig> auto& c, auto&& visit) {
  visit("sync_policy", c.sync_policy);
  visit("batch_policy", c.batch_policy);
  visit("compression_policy", c.compression_policy);
  visit("learning_rate_policy", c.learning_rate_policy);
  visit("transfer_policy", c.transfer_policy);
  visit("rows", c.rows);
  visit("min", c.min);
  visit("max", c.max);
  visit("tick_ns", c.tick);
  visit("max_wait_ns", c.max_wait);
  visit("idle_wait_max_ns", c.idle_wait_max);
  visit("collective", c.collective);
  visit("contribution_bytes", c.contribution_bytes);
  visit("tensors", c.tensors);
  visit("tensor_rows", c.tensor_rows);
  visit("buffers", c.buffers);
  visit("number_bytes", c.number_bytes);
  visit("momentum_adds_up", c.momentum_adds_up);
  visit("checkpoint_rounds", c.checkpoint_rounds);
  visit("on_divergence", c.on_divergence);
  visit("changes_size", c.changes_size);
  visit("devices", c.devices);
  visit("settings", c.settings);
}

/// Memory of one controller: values of the group, followed by the same number of values for each device.
struct ControllerMemory {
  std::string name;
  std::vector<double> values;
  std::vector<std::string> devices = {};  ///< ids, by rank; empty: nothing about single devices
  bool operator==(const ControllerMemory&) const = default;
};
constexpr void fields(Either<ControllerMemory> auto& m, auto&& visit) {
  visit("name", m.name);
  visit("values", m.values);
  visit("devices", m.devices);
}

/// Inputs of a plan other than the facts: results of earlier plans only, equal on all devices.
struct PolicyState {
  std::uint64_t view = 0;         ///< number of the view; 0: unknown
  std::uint64_t round = 0;        ///< round of the view
  std::uint32_t idle_rounds = 0;  ///< consecutive idle rounds so far
  RoundPlan last;
  std::uint64_t table_hash = 0;  ///< hash of the table of `last`; 0: none
  std::vector<ControllerMemory>
      memory;  ///< memory of each controller that has one, by name; starts from the agreed state
  bool operator==(const PolicyState&) const = default;
};
constexpr void fields(Either<PolicyState> auto& s, auto&& visit) {
  visit("view", s.view);
  visit("round", s.round);
  visit("idle_rounds", s.idle_rounds);
  visit("memory", s.memory);
  visit("table_hash", s.table_hash);
  visit("last", s.last);
}

}  // namespace rivulet::sync::policy
