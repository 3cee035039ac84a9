#include "tests/support/sim_group.h"

#include <cerrno>
#include <map>
#include <utility>

#include "core/check.h"
#include "core/rng.h"
#include "sync/membership/membership.h"
#include "sync/membership/snapshot.h"
#include "tests/support/group_support.h"
#include "tests/support/sim_device.h"

namespace rivulet::testing {
namespace {

using namespace std::chrono_literals;

constexpr Duration wire_deadline = 400ms;
constexpr Duration calm_before_check = 1s;
constexpr Duration least_behind = 300ms;
constexpr Duration time_to_start = 2s;
constexpr Duration forming_pause = 2s;  ///< the longest of runtime/train/worker_view.cpp
constexpr int views_that_fail = 3;

/// Without faults the group must form again: lost records are repeated, and a few views that were closed over
/// earlier faults fail one after the other. Each costs the wait for the closing device, the deadline of its
/// connections, a restart, and the pause before the next. A process whose disk is behind the group first
/// waits for a sign of its predecessor. Of 2350 runs the slowest took 8.7 s, 49 more than 5 s.
Duration patience() {
  const sync::membership::MembershipConfig membership;
  return membership.retry_after + membership.takeover_wait +
         views_that_fail * (membership.close_wait + wire_deadline + sim_started_again_after + forming_pause);
}

runtime::LoadedConfig job_of(const SimSchedule& schedule) {
  runtime::LoadedConfig loaded;
  auto& c = loaded.config;
  agree_on_every_batch(c);
  c.job.name = "sim";
  c.job.devices = {schedule.least == 0 ? schedule.devices : schedule.least, schedule.devices,
                   schedule.devices};
  c.source.topics = {"rows"};
  c.decode.format = "raw";
  c.settings.set("decode.raw.label", std::string("f32"));
  c.settings.set("decode.raw.features", std::string("f32"));
  c.decode.shape = {sim_row_columns};
  c.decode.scale = {1};
  c.decode.shift = {0};
  c.model.name = "sums";
  c.settings.set("model.mlp.hidden", Settings::Integers{static_cast<std::int64_t>(schedule.devices)});
  c.model.dtype = "float64";
  c.train.loss = "mse";
  c.normalize.targets = false;  // the state is the exact sum of row values
  c.train.lr = sim_learning_rate;
  c.settings.set("train.optimizer.momentum", sim_momentum);
  c.batch.policy = schedule.policy;
  c.batch.rows = 8;
  c.batch.tick = 20ms;
  c.batch.max_wait = 40ms;
  c.buffer.rows = 64;
  c.sync.deadline = wire_deadline;
  c.sync.collective = schedule.reduction;
  c.sync.speculate = schedule.speculate == "yes";
  c.checkpoint.every_rounds = 3;
  c.checkpoint.every_interval = 150ms;
  c.checkpoint.quorum = schedule.quorum;
  loaded.group_values["checkpoint.quorum"] = std::to_string(schedule.quorum);
  return loaded;
}

/// Without the waits of devices that are lost again and again, which would take most of the time here.
sync::membership::Rules rules_of(const SimSchedule& schedule) {
  sync::membership::Rules rules = schedule.rules;
  rules.cool_down = false;
  return rules;
}

/// The group, and an agent that executes the schedule.
class Group final : public runtime::Agent {
 public:
  explicit Group(const SimSchedule& schedule);
  [[nodiscard]] std::string_view name() const noexcept override { return "fate"; }
  runtime::Turn step() override;
  SimOutcome run();

 private:
  using Action = std::function<void()>;
  void later(Duration after, Action action);
  void happen(const SimEvent& event);
  bool happen_to_process(const SimEvent& event);
  bool happen_to_network(const SimEvent& event);
  bool happen_to_log(const SimEvent& event);
  bool happen_to_disk(const SimEvent& event);
  bool happen_to_job(const SimEvent& event);
  void fall_behind(std::size_t device, Duration away);
  void behead_log(std::int64_t before);
  void stop_job(Duration away, std::int64_t nonce);
  void delete_rows(std::size_t device, std::int64_t records_kept);
  void calm_down();
  void look_for_end();
  [[nodiscard]] bool is_well() const;
  [[nodiscard]] bool is_lost() const;
  [[nodiscard]] SimFaultCounts faults() const;
  SimDevice& device_of(const SimEvent& event) { return *devices_[index_of(event)]; }
  [[nodiscard]] std::size_t index_of(const SimEvent& event) const {
    return static_cast<std::size_t>(event.numbers[0]) % devices_.size();
  }
  static Duration ms(std::int64_t count) { return std::chrono::milliseconds(count); }

  const SimSchedule schedule_;
  runtime::SimRunner runner_;
  VirtualClock clock_;
  Wake& wake_;
  SimLog log_;
  SimWires wires_;
  SimStreams streams_;
  SimReferee referee_;
  SimWorld world_;
  std::vector<std::unique_ptr<SimDevice>> devices_;
  std::multimap<TimePoint, Action> actions_;
  TimePoint calm_since_{};
  std::uint64_t commits_before_calm_ = 0;
  Duration stood_after_{};
  bool over_ = false;
  bool lost_ = false;
};

Group::Group(const SimSchedule& schedule)
    : schedule_(schedule),
      wake_(runner_.make_wake()),
      log_(schedule.devices),
      wires_(schedule.devices, wire_deadline),
      streams_{.kept_from = std::vector<std::int64_t>(schedule.devices)},
      referee_(schedule.devices, rules_of(schedule), streams_,
               [this](std::size_t device, const Stamp& stamp) {
                 return devices_[device]->disk().is_durable(sim_folder + ("/" + rivulet::text_of(stamp)) +
                                                            ".ckpt");
               }),
      world_{runner_,
             log_,
             wires_,
             referee_,
             job_of(schedule),
             rules_of(schedule),
             ms(schedule.disk_ms),
             schedule.seed,
             streams_,
             [this](Duration after, Action action) { later(after, std::move(action)); },
             schedule.copies == "yes" ? 0 : std::size_t{1} << 20U} {
  runner_.add(*this, clock_, wake_);
  wires_.delay_messages(ms(schedule.jitter_ms), derive_seed(schedule.seed, "delays"));
  log_.listen([this](std::span<const std::byte> bytes) { referee_.said(bytes); });
  wires_.watch([this](std::span<const std::byte> bytes) { referee_.sent(bytes); });
  log_.watch([this](const LogEntry& entry) { referee_.record(entry); });
  for (std::size_t i = 0; i < schedule.devices; ++i) {
    devices_.push_back(std::make_unique<SimDevice>(world_, i));
    later(0ms, [this, i] { devices_[i]->start(); });
  }
  Duration last{};
  for (const SimEvent& event : schedule_.events) {
    later(ms(event.at_ms), [this, &event] { happen(event); });
    last = std::max(last, ms(event.at_ms));
  }
  later(last + calm_before_check, [this] { calm_down(); });
}

void Group::later(Duration after, Action action) {
  const TimePoint at = runner_.now() + after;
  actions_.emplace(at, std::move(action));
  wake_.notify_at(at);
}

runtime::Turn Group::step() {
  log_.advance(clock_.now());
  while (!actions_.empty() && actions_.begin()->first <= clock_.now()) {
    const Action action = std::move(actions_.begin()->second);
    actions_.erase(actions_.begin());
    action();
  }
  return {.wake_at = actions_.empty() ? TimePoint::max() : actions_.begin()->first};
}

void Group::happen(const SimEvent& event) {
  const bool known = happen_to_process(event) || happen_to_network(event) || happen_to_log(event) ||
                     happen_to_disk(event) || happen_to_job(event);
  RIVULET_CHECK(known, "unknown kind of event");
}

bool Group::happen_to_process(const SimEvent& e) {
  const auto seed = [](std::int64_t number) { return std::optional(static_cast<std::uint64_t>(number)); };
  if (e.what == "kill") {
    device_of(e).crash_after(static_cast<int>(e.numbers[1]), {ms(e.numbers[2]), std::nullopt});
  } else if (e.what == "power") {
    device_of(e).crash_after(static_cast<int>(e.numbers[1]), {ms(e.numbers[2]), seed(e.numbers[3])});
  } else if (e.what == "saving") {
    device_of(e).crash_saving(static_cast<int>(e.numbers[1]), {ms(e.numbers[2]), seed(e.numbers[3])});
  } else if (e.what == "everybody") {
    for (auto& device : devices_) device->crash_now({ms(e.numbers[0]), seed(e.numbers[1])});
  } else if (e.what == "stop") {
    device_of(e).stop(ms(e.numbers[1]));
  } else if (e.what == "freeze") {
    device_of(e).freeze(ms(e.numbers[1]));
  } else {
    return false;
  }
  return true;
}

bool Group::happen_to_network(const SimEvent& e) {
  const std::size_t device = index_of(e);
  const std::size_t to = static_cast<std::size_t>(e.numbers[1]) % devices_.size();
  if (e.what == "cut") {
    wires_.cut(device);
  } else if (e.what == "mute") {
    wires_.mute(device, true);
    later(ms(e.numbers[1]), [this, device] { wires_.mute(device, false); });
  } else if (e.what == "block") {
    wires_.block(device, to, true);
    later(ms(e.numbers[2]), [this, device, to] { wires_.block(device, to, false); });
  } else if (e.what == "isolate") {
    wires_.isolate(device, true);
    later(ms(e.numbers[1]), [this, device] { wires_.isolate(device, false); });
  } else if (e.what == "slow") {
    wires_.slow_down(ms(e.numbers[0]));
    later(ms(e.numbers[1]), [this] { wires_.slow_down(0ms); });
  } else {
    return false;
  }
  return true;
}

bool Group::happen_to_log(const SimEvent& e) {
  const std::size_t device = index_of(e);
  if (e.what == "silent") {
    streams_.silent_until = runner_.now() + ms(e.numbers[0]);
  } else if (e.what == "lose") {
    log_.next_fate(device, {.lost = true});
  } else if (e.what == "repeat") {
    log_.next_fate(device, {.again = ms(e.numbers[1])});
  } else if (e.what == "delay") {
    log_.next_fate(device, {.later = ms(e.numbers[1])});
  } else if (e.what == "away") {
    log_.stay_away(device, runner_.now() + ms(e.numbers[1]));
  } else if (e.what == "gap") {
    log_.leave_out(sync::membership::snap_every);
  } else if (e.what == "behead") {
    behead_log(e.numbers[0]);
  } else if (e.what == "behind") {
    fall_behind(device, ms(e.numbers[1]));
  } else {
    return false;
  }
  return true;
}

/// A device reads nothing while a SNAP is written and older records are deleted. The first device of a view
/// writes SNAPs itself.
void Group::fall_behind(std::size_t device, Duration away) {
  if (device == 0) device = 1;
  log_.leave_out(sync::membership::snap_every);
  log_.stay_away(device, runner_.now() + least_behind + away + 1ms);
  later(least_behind + away, [this] { behead_log(0); });
}

/// Deletes old records up to a few before the last SNAP.
void Group::behead_log(std::int64_t before) {
  if (referee_.fold().snapped_at >= 0)
    log_.behead(referee_.fold().snapped_at, 1 + static_cast<std::size_t>(before));
}

bool Group::happen_to_disk(const SimEvent& e) {
  SimDisk& disk = device_of(e).disk();
  if (e.what == "full") {
    disk.fail_calls(static_cast<int>(e.numbers[1]), ENOSPC);
  } else if (e.what == "eio") {
    disk.fail_calls(static_cast<int>(e.numbers[1]), EIO);
  } else if (e.what == "unreadable") {
    disk.make_unreadable(true);
    later(ms(e.numbers[1]), [&disk] { disk.make_unreadable(false); });
  } else if (e.what == "rot") {
    Rng rng(static_cast<std::uint64_t>(e.numbers[1]));
    disk.rot(rng);
  } else if (e.what == "wipe") {
    device_of(e).crash_now({ms(e.numbers[1]), std::nullopt});
    disk.wipe();
  } else {
    return false;
  }
  return true;
}

bool Group::happen_to_job(const SimEvent& e) {
  if (e.what == "halt") {
    stop_job(ms(e.numbers[0]), e.numbers[1]);
  } else if (e.what == "anew") {
    stop_job(ms(e.numbers[0]), e.numbers[1]);
    for (auto& device : devices_) device->want_new_run();
  } else if (e.what == "delete") {
    delete_rows(index_of(e), e.numbers[1]);
  } else {
    return false;
  }
  return true;
}

/// `rivulet stop`.
void Group::stop_job(Duration away, std::int64_t nonce) {
  const auto stop = sync::membership::encode(sync::membership::Stop{std::to_string(nonce), "beside", 1},
                                             world_.job.config.job.name);
  log_.append_beside(runner_.now(), stop.value());
  for (auto& device : devices_) device->expect_end(away);
}

/// Retention: keeps only the N newest records of a partition.
void Group::delete_rows(std::size_t device, std::int64_t records_kept) {
  const double written = to_seconds(runner_.now().time_since_epoch()) * streams_.records_per_second;
  std::int64_t& kept_from = streams_.kept_from[device];
  kept_from = std::max(kept_from, static_cast<std::int64_t>(written) - records_kept);
}

/// Heals all faults. A disk that failed twice is not used again until its device restarts; so restarts it.
void Group::calm_down() {
  if (std::ranges::any_of(devices_, [](const auto& device) { return device->will_crash(); }))
    return later(100ms, [this] { calm_down(); });
  wires_.heal();
  streams_.silent_until = {};
  log_.heal();
  for (auto& device : devices_) {
    device->disk().fail_calls(0, 0);
    device->disk().make_unreadable(false);
  }
  for (const SimEvent& event : schedule_.events)
    if (event.what == "eio") device_of(event).stop(0ms);
  calm_since_ = runner_.now();
  commits_before_calm_ = referee_.commits();
  look_for_end();
}

bool Group::is_well() const {
  return referee_.commits() > commits_before_calm_ &&
         std::all_of(devices_.begin(), devices_.end(),
                     [this](const auto& device) { return device->trains_in(referee_.fold().view.number); });
}

/// C5, and C8 once more.
void Group::look_for_end() {
  const Duration waited = runner_.now() - calm_since_;
  over_ = is_well();
  if (over_) {
    stood_after_ = waited;
    for (const auto& device : devices_) referee_.folded(device->node().membership().fold());
    return;
  }
  // Irrecoverable: all disks are readable. Waits first, since a starting device has no knowledge yet.
  lost_ = waited > time_to_start && is_lost();
  over_ = lost_ || waited > patience();
  if (!over_) return later(100ms, [this] { look_for_end(); });
  if (!lost_) referee_.found(check_wait("a view and a commit after the last fault", waited, patience()));
}

bool Group::is_lost() const {
  const Stamp committed = referee_.fold().committed.stamp;
  return std::none_of(devices_.begin(), devices_.end(),
                      [&](const auto& device) { return device->has(committed); });
}

SimFaultCounts Group::faults() const {
  SimFaultCounts all = world_.faults;
  for (const SimFaultCounts& some : {streams_.faults, wires_.faults(), log_.faults(), referee_.faults()})
    all.add(some);
  for (const auto& device : devices_) all.add(device->disk().faults());
  return all;
}

SimOutcome Group::run() {
  runner_.run_until([this] { return over_ || !referee_.finding().empty(); });
  SimOutcome outcome;
  outcome.finding = referee_.finding();
  outcome.lost = lost_;
  outcome.views = referee_.fold().view.number;
  outcome.commits = referee_.commits();
  outcome.folds_compared = referee_.folds_compared();
  outcome.steps = referee_.steps();
  for (const auto& device : devices_) outcome.starts += device->lives();
  outcome.seconds = to_seconds(runner_.now().time_since_epoch());
  outcome.seconds_to_stand = to_seconds(stood_after_);
  outcome.losses = referee_.losses();
  outcome.history = referee_.digest();
  outcome.faults = faults();
  return outcome;
}

}  // namespace

SimOutcome simulate(const SimSchedule& schedule) {
  return Group(schedule).run();
}

}  // namespace rivulet::testing
