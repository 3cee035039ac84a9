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

/// What all devices make of the facts of a round, as values: made by sync/policy/arbiter.h, recorded in
/// decision logs.
namespace rivulet::sync::policy {

enum class Mode : std::uint8_t {
  gradients,  ///< weighted gradients are summed, everyone steps with the sum
  delta,      ///< movement since the last aggregating round is summed (after local steps)
  hold,       ///< nobody steps; batches and gradients are kept for the next round
  idle,       ///< nobody has rows; nothing changes
  skip,       ///< rows are used up but nothing is applied (non-finite, dry run)
};
std::string_view name_of(Mode mode) noexcept;

/// How contributions become a sum.
struct Way {
  std::string collective = "gather";  ///< catalog name
  std::string compressor = "dense";   ///< catalog name
  double keep_ratio = 1.0;            ///< of the entries of a contribution, what the compressor aims at
  std::uint64_t payload_bytes =
      0;  ///< of each device, exactly: the compressor's slot and the model's buffers
  bool operator==(const Way&) const = default;
};
constexpr void fields(Either<Way> auto& w, auto&& visit) {
  visit("collective", w.collective);
  visit("compressor", w.compressor);
  visit("keep_ratio", w.keep_ratio);
  visit("payload_bytes", w.payload_bytes);
}

/// What the group does about a model that has diverged (sync/policy/divergence.h).
enum class Retreat : std::uint8_t {
  none,
  go_back,  ///< all leave the view, and begin the next one with a good state
  give_up,  ///< it has been in vain: all end
};
std::string_view name_of(Retreat retreat) noexcept;

/// What becomes of the round whose facts were just gathered.
struct Decision {
  Mode mode = Mode::idle;
  std::vector<double> weights;  ///< [N], sums to 1 unless nobody has rows
  double learning_rate_factor = 1.0;
  bool checkpoint = false;             ///< everyone saves the agreed state as this round leaves it
  bool stop = false;                   ///< everyone ends after this round, exit 0
  std::vector<std::uint32_t> leaving;  ///< ranks that end after this round
  /// Of a gated round, and of no other: how its contributions are exchanged, in place of Schedule::way.
  std::optional<Way> way;
  Retreat retreat = Retreat::none;
  std::uint64_t back_lineage = 0;  ///< of the state to go back to
  std::uint64_t back_step = 0;     ///< same; 0: the model as the job began
  bool operator==(const Decision&) const = default;
};
constexpr void fields(Either<Decision> auto& d, auto&& visit) {
  visit("mode", d.mode);
  visit("weights", d.weights);
  visit("learning_rate_factor", d.learning_rate_factor);
  visit("checkpoint", d.checkpoint);
  visit("stop", d.stop);
  visit("leaving", d.leaving);
  visit("way", d.way);
  visit("retreat", d.retreat);
  visit("back_lineage", d.back_lineage);
  visit("back_step", d.back_step);
}

/// When a device asks the others to synchronize before its local steps are made (published/when/selsync.cpp):
/// its smoothed squared gradient norm has changed by more than `change` from one step to the next.
struct EarlyCall {
  double change = 0;       ///< relative
  double norm_weight = 1;  ///< of the newest in the mean
  bool operator==(const EarlyCall&) const = default;
};
constexpr void fields(Either<EarlyCall> auto& c, auto&& visit) {
  visit("change", c.change);
  visit("norm_weight", c.norm_weight);
}

/// Devices step on their own copies and exchange deltas, not gradients. Nothing is sent until a device has
/// made `steps`, each at the latest Schedule::wait after the one before, made or not; Schedule::rows are
/// those of one step.
struct LocalSchedule {
  std::uint32_t steps = 1;
  Duration time{};       ///< ... or until this long after the last synchronization; 0 = no limit
  Duration latest{};     ///< after the last synchronization: a device that has not come by then is late
  bool overlap = false;  ///< those of the next round begin while this one's synchronization is under way
  std::optional<EarlyCall> early;
  bool operator==(const LocalSchedule&) const = default;
};
constexpr void fields(Either<LocalSchedule> auto& l, auto&& visit) {
  visit("steps", l.steps);
  visit("time_ns", l.time);
  visit("latest_ns", l.latest);
  visit("overlap", l.overlap);
  visit("early", l.early);
}

/// Rows of which each rank sends copies to each other one with its facts, others to each if it has enough.
/// Their owners train and announce them; the others compute on them besides.
struct Injection {
  std::vector<std::uint32_t> rows;  ///< [N]
  double per_row = 0;               ///< copies in a step, for each of its own rows: of those that came last
  bool operator==(const Injection&) const = default;
};
constexpr void fields(Either<Injection> auto& i, auto&& visit) {
  visit("rows", i.rows);
  visit("per_row", i.per_row);
}

/// How the round after it is entered and exchanged: known before its facts leave.
struct Schedule {
  std::vector<std::uint32_t> rows;  ///< [N] to bring; 0 = enter at once
  Duration wait{};                  ///< enter at the latest this long after the round before ended
  bool whole = false;               ///< a device without all its rows enters with none and says so
  bool rest = false;  ///< nothing is expected: enter on own rows, on a peer's entry, or after `wait`
  Way way;
  /// The way is decided with the facts of the round (Decision::way), for it depends on them; `way` is what it
  /// will most likely be. So nothing leaves before its plan is known.
  bool gated = false;
  bool freeze = false;                 ///< slow loops stay where they are (profiling)
  std::optional<LocalSchedule> local;  ///< none: the group steps with the mean gradient of one batch each
  std::optional<Injection> injection;
  bool operator==(const Schedule&) const = default;

  /// What leaves a device after each step takes its momentum along (DGC, Lin et al. 2018): else the same
  /// direction would be sent again before the group has answered.
  [[nodiscard]] bool masks_momentum() const noexcept { return local && local->steps == 1; }
  /// Local steps of a round, 1 at least.
  [[nodiscard]] std::uint32_t steps() const noexcept { return local ? local->steps : 1; }
  [[nodiscard]] bool overlaps() const noexcept { return local && local->overlap; }
  [[nodiscard]] Duration latest() const noexcept { return local ? local->latest : Duration(0); }
  /// Of the newest norm in the mean that early calls follow.
  [[nodiscard]] double norm_weight() const noexcept {
    return local && local->early ? local->early->norm_weight : 1;
  }
  /// Copies of others' rows in a step, for each own one.
  [[nodiscard]] double injected_per_row() const noexcept { return injection ? injection->per_row : 0; }
  /// Rows of which this rank sends copies.
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
  visit("freeze", s.freeze);
  visit("local", s.local);
  visit("injection", s.injection);
}

/// What all devices make of the facts of a round, in two tenses.
struct RoundPlan {
  Decision now;
  Schedule next;
  std::string why;  ///< one phrase for people and the decision log
  bool operator==(const RoundPlan&) const = default;
};
constexpr void fields(Either<RoundPlan> auto& p, auto&& visit) {
  visit("now", p.now);
  visit("next", p.next);
  visit("why", p.why);
}
/// For Facts::plan_hash: equal plans made of equal tables (their hash_of), equal hashes. The table is in it
/// so that the next round bears witness to every fact of this one, also to those that no plan depends on.
std::uint64_t hash_of(const RoundPlan& plan, std::uint64_t table_hash);

/// What a controller's own key is set to, as text or as a number: 0 or 1, or seconds, where it is one of
/// those.
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
  std::string learning_rate_policy = "none";  ///< none: nobody changes it
  std::string transfer_policy = "none";       ///< none: rows stay where they are
  std::uint32_t rows = 64;
  std::uint32_t min = 1;
  std::uint32_t max = 1024;
  Duration tick = std::chrono::milliseconds(100);
  Duration max_wait = std::chrono::milliseconds(200);
  Duration idle_wait_max = std::chrono::seconds(1);
  std::string collective = "gather";       ///< catalog name, or "auto": whichever fits the group
  std::uint64_t contribution_bytes = 0;    ///< (P + B) * bytes per number
  std::vector<std::uint64_t> tensors;      ///< numbers of each tensor of parameters
  std::vector<std::uint64_t> tensor_rows;  ///< of each, its first dimension
  std::uint64_t buffers = 0;               ///< B
  std::uint32_t number_bytes = 4;
  bool momentum_adds_up = false;  ///< the optimizer's memory is a sum of gradients: devices may keep parts
  std::uint64_t checkpoint_rounds = 0;   ///< applied rounds from one checkpoint to the next; 0 = by wish only
  std::string on_divergence = "ignore";  ///< "go_back": to a good checkpoint
  std::vector<PolicySetting> settings;   ///< of the keys of its controllers
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
  visit("settings", c.settings);
}

/// What one controller remembers: of the group, and behind that of each device, as many numbers of each.
struct ControllerMemory {
  std::string name;
  std::vector<double> values;
  std::vector<std::string> devices = {};  ///< ids, by rank; empty: it remembers nothing of single devices
  bool operator==(const ControllerMemory&) const = default;
};
constexpr void fields(Either<ControllerMemory> auto& m, auto&& visit) {
  visit("name", m.name);
  visit("values", m.values);
  visit("devices", m.devices);
}

/// What plans are made from besides the facts: only what came out of earlier plans and is equal everywhere.
struct PolicyState {
  std::uint64_t view = 0;         ///< number of the view; 0: not said
  std::uint64_t round = 0;        ///< of the view
  std::uint32_t idle_rounds = 0;  ///< in a row, so far
  RoundPlan last;
  std::uint64_t table_hash = 0;          ///< of the table that `last` was made of; 0: of none
  std::vector<ControllerMemory> memory;  ///< of each controller that has one, by name; begins as agreed
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
