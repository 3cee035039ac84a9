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
  std::string collective;  ///< catalog name
  std::string compressor;  ///< catalog name; empty: nothing is said
  double keep_ratio = 1.0;
  std::uint64_t payload_bytes = 0;
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
  /// In a gated round (Schedule::gated): how its contributions are exchanged, in place of what it was entered
  /// with. Else nothing is said.
  Way way;
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

/// How the round after it is entered and exchanged: known before its facts leave.
struct Schedule {
  std::vector<std::uint32_t> rows;  ///< [N] to bring; 0 = enter at once
  Duration wait{};                  ///< enter at the latest this long after the round before ended
  bool whole = false;               ///< a device without all its rows enters with none and says so
  bool rest = false;  ///< nothing is expected: enter on own rows, on a peer's entry, or after `wait`
  std::string collective = "gather";  ///< catalog name
  std::string compressor = "dense";   ///< catalog name
  double keep_ratio = 1.0;            ///< of the entries of a contribution, what the compressor aims at
  std::uint64_t payload_bytes =
      0;                ///< of each device, exactly: the compressor's slot and the model's buffers
  bool freeze = false;  ///< slow loops stay where they are (profiling)
  /// Devices step on their own copies and agree on how far they have come, not on gradients. Nothing is sent
  /// until a device has had `own_steps` of them, each at the latest `wait` after the one before, made or not;
  /// `rows` are those of one step.
  bool apart = false;
  std::uint32_t own_steps = 1;
  Duration own_time{};  ///< ... or until so long after the last agreement; 0 = no limit
  Duration latest{};    ///< after the last agreement: a device that has not come by then is late
  /// The own steps of the next round begin while this one's agreement is under way: as many as it asks for,
  /// at most.
  bool overlap = false;
  /// Rows of which each rank sends copies to each other one with its facts [N], others to each if it has
  /// enough; empty: of none. Their owners train
  /// and announce them; the others compute on them besides.
  std::vector<std::uint32_t> copies;
  double guests = 0;  ///< copies in a step, for each of its own rows: of those that came last
  /// How contributions are exchanged is decided with the facts of the round (Decision::way), for it depends
  /// on them. So nothing leaves before its plan is known.
  bool gated = false;
  /// Relative change of a device's smoothed squared gradient norm, from one own step to the next, from which
  /// it calls the others; 0: never. `norm_weight`: of the newest in the mean.
  double call_above = 0;
  double norm_weight = 1;
  bool operator==(const Schedule&) const = default;
  /// What leaves a device after each step takes its momentum along (DGC, Lin et al. 2018): else the same
  /// direction would be sent again before the group has answered.
  [[nodiscard]] bool masks_momentum() const noexcept { return apart && own_steps == 1; }
};
constexpr void fields(Either<Schedule> auto& s, auto&& visit) {
  visit("rows", s.rows);
  visit("wait_ns", s.wait);
  visit("whole", s.whole);
  visit("rest", s.rest);
  visit("collective", s.collective);
  visit("compressor", s.compressor);
  visit("keep_ratio", s.keep_ratio);
  visit("payload_bytes", s.payload_bytes);
  visit("freeze", s.freeze);
  visit("apart", s.apart);
  visit("own_steps", s.own_steps);
  visit("own_time_ns", s.own_time);
  visit("latest_ns", s.latest);
  visit("overlap", s.overlap);
  visit("copies", s.copies);
  visit("guests", s.guests);
  visit("gated", s.gated);
  visit("call_above", s.call_above);
  visit("norm_weight", s.norm_weight);
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
