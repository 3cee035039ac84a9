#include "tests/support/sim_device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "core/rng.h"
#include "runtime/node/new_run.h"
#include "runtime/node/node_config.h"
#include "tests/support/sim_rows.h"

namespace rivulet::testing {
namespace {

using runtime::Turn;

constexpr Duration crash_at_last = std::chrono::seconds(1);
constexpr Turn asleep{};

/// Prints a device's log, to examine a schedule: SIM_TALK=1.
class TalkingLog final : public runtime::Logger {
 public:
  TalkingLog(const Clock& clock, std::size_t device) : clock_(clock), device_(device) {}
  void write(runtime::Level, std::string_view message, const runtime::Fields& fields) override {
    std::string text(message);
    for (const auto& [key, value] : fields) text.append(" ").append(key).append("=").append(value);
    std::printf("%9.3f device %zu: %s\n", to_seconds(clock_.now().time_since_epoch()), device_ + 1,
                text.c_str());
  }

 private:
  const Clock& clock_;
  const std::size_t device_;
};

runtime::Catalog catalog_of_sums() {
  runtime::Catalog catalog = runtime::builtin_catalog();
  catalog.models = sim_models();
  catalog.optimizers = sim_optimizers();
  return catalog;
}

/// "/checkpoints/3.500.ckpt": 3.500. Uses only the name: the tests find out whether the file is readable.
Stamp stamp_of_file(const std::string& path) {
  std::istringstream name(path.substr(path.rfind('/') + 1));
  Stamp stamp;
  char dot = 0;
  std::string rest;
  name >> stamp.lineage >> dot >> stamp.step >> rest;
  return rest == ".ckpt" ? stamp : Stamp{};
}

}  // namespace

/// An agent that exists across all restarts of a device.
class SimDevice::Loop final : public runtime::Agent {
 public:
  Loop(runtime::SimRunner& runner, std::function<Turn()> body)
      : wake(runner.make_wake()), body_(std::move(body)) {
    runner.add(*this, clock, wake);
  }
  [[nodiscard]] std::string_view name() const noexcept override { return "simulated"; }
  Turn step() override { return body_(); }

  VirtualClock clock;
  Wake& wake;

 private:
  std::function<Turn()> body_;
};

struct SimDevice::Agents {
  Loop ingest, worker, checkpointer, donor;
};

SimDevice::SimDevice(SimWorld& world, std::size_t index)
    : world_(world), index_(index), job_(world.job), host_(devices::make_host_device()) {
  job_.config.device.id = id_of_device(index);
  job_.config.source.claims = {{job_.config.source.topics.front(), static_cast<int>(index)}};
  agents_.reset(new Agents{{world.runner, [this] { return read(); }},
                           {world.runner, [this] { return train(); }},
                           {world.runner, [this] { return save(); }},
                           {world.runner, [this] { return give(); }}});
  const char* talk = std::getenv("SIM_TALK");  // NOLINT(concurrency-mt-unsafe)
  log_ = talk == nullptr ? runtime::make_null_logger()
                         : std::make_unique<TalkingLog>(agents_->worker.clock, index);
}

SimDevice::~SimDevice() = default;

runtime::NodeDependencies SimDevice::outside() {
  Clock& reading = agents_->ingest.clock;
  const auto published = [this](std::span<const NextOffset> positions) {
    if (power_.take()) world_.referee.published(run_, positions);
  };
  return {
      .ingest_clock = reading,
      .worker_clock = agents_->worker.clock,
      .ingest_wake = agents_->ingest.wake,
      .worker_wake = agents_->worker.wake,
      .source = make_sim_source(static_cast<std::int32_t>(index_), world_.streams, reading, published),
      .device = devices::make_host_device(),
      .log = world_.log.open(index_, agents_->worker.clock, power_),
      .connect = world_.wires.connect(index_, agents_->worker.clock, power_),
      .metrics = metrics_,
      .logger = *log_,
      .decisions = runtime::make_null_decision_log(),
      .stop = stop_,
      .nonce_seed = derive_seed(world_.seed, "nonce", index_ * 1'000'000 + lives_),
      .checkpoint_wake = &agents_->checkpointer.wake,
      .checkpoints = sim_folder,
      .copies = runtime::CopyDependencies{.clock = agents_->donor.clock,
                                          .wake = agents_->donor.wake,
                                          .give = world_.wires.connect(index_, agents_->donor.clock, power_),
                                          .take = world_.wires.connect(index_, agents_->worker.clock, power_),
                                          .above = world_.copies_above},
      .files = disk_,
      .rules = world_.rules};
}

/// The part of `rivulet run --new-run` before the node starts. False: it ends here, at each restart, until
/// the last run has ended for all devices.
bool SimDevice::make_ready_for_run() {
  sync::membership::LogReader reader(job_.config.job.name, world_.rules);
  const auto log = world_.log.open(index_, agents_->worker.clock, power_);
  while (true) {
    const auto read = log->poll(64);
    if (!read) return false;
    if (read.value().empty()) break;
    for (const LogEntry& entry : read.value()) reader.take(entry);
  }
  const auto ready = runtime::start_over(reader.fold(), job_.config, sim_folder, *log_, disk_);
  if (!ready) take_advice(ready.error());
  return static_cast<bool>(ready);
}

/// What an operator does after reading the error.
void SimDevice::take_advice(const Error& error) {
  if (error.code != ErrorCode::invalid_config) return;
  for (const char* advice : {"or start this one without it", "start this device without --new-run"})
    if (error.message.find(advice) != std::string::npos) new_run_ = false;
  if (error.message.find("to an earlier run") != std::string::npos) new_run_ = true;
}

void SimDevice::start() {
  if (up()) return;
  power_.restore();
  saved_at_.reset();
  for (Loop* agent : {&agents_->ingest, &agents_->worker, &agents_->checkpointer, &agents_->donor})
    agent->clock.advance_to(world_.runner.now());
  if (!planned_.empty()) arm();
  if (new_run_ && !make_ready_for_run())
    return will_crash() ? crash_as_planned(SimFault::crash_starting) : start_later(sim_started_again_after);
  ++lives_;
  stop_.store(0);
  build_node();
  if (!up()) return crash_as_planned(SimFault::crash_starting);
  const runtime::AgreedState& state = node_->state();
  seen_ = state.stamp;
  view_ = 0;
  world_.referee.booted(index_, state, runtime::digest_of(state, *host_).value().hex());
  agents_->ingest.wake.notify();
  agents_->worker.wake.notify();
}

/// Builds nothing if the power was lost during preparation.
void SimDevice::build_node() {
  static const runtime::Catalog catalog = catalog_of_sums();
  runtime::RunOptions options;
  options.new_run = new_run_;
  auto node = runtime::Node::build(job_, options, catalog, outside());
  if (node) {
    node_ = std::move(node).value();
  } else if (!power_.off()) {
    std::fprintf(stderr, "could not build a node: %s\n", node.error().message.c_str());
    std::abort();
  }
}

Turn SimDevice::read() {
  if (!node_) return asleep;
  if (is_frozen()) return {.wake_at = frozen_until_};
  return step(node_->ingest().step());
}

Turn SimDevice::step(Turn turn) {
  if (!node_) return asleep;
  if (power_.off()) {
    crash_as_planned(planned_.front().on_disk ? SimFault::crash_saving : SimFault::crash_inside);
    return asleep;
  }
  if (node_->ingest().failure())
    world_.referee.found("a device cannot read: " + node_->ingest().failure()->message);
  turn.finished = false;
  return turn;
}

Turn SimDevice::train() {
  if (!node_) return asleep;
  if (is_frozen()) return {.wake_at = frozen_until_};
  Turn turn = node_->worker().step();
  if (power_.off()) return step(turn);
  look();
  if (!turn.finished) return turn;
  ended();
  return asleep;
}

/// Writing takes disk time: events during it precede its result.
Turn SimDevice::save() {
  if (!node_ || !(node_->checkpoints()->busy() || node_->checkpoints()->fetching())) return asleep;
  if (is_frozen()) return {.wake_at = frozen_until_};
  const TimePoint now = agents_->checkpointer.clock.now();
  if (!saved_at_) saved_at_ = now + world_.disk_time;
  if (now < *saved_at_) return {.wake_at = *saved_at_};
  saved_at_.reset();
  return step(node_->checkpoints()->step());
}

Turn SimDevice::give() {
  if (!node_ || node_->donor() == nullptr) return asleep;
  if (is_frozen()) return {.wake_at = frozen_until_};
  return step(node_->donor()->step());
}

/// Whether a new state is that of the group: received inside a new view, or copied outside.
bool adopts(const runtime::NodeStatus& status) {
  using runtime::NodeState;
  const NodeState state = status.state.load();
  if (state == NodeState::connecting) return true;
  const bool waits = state == NodeState::joining || state == NodeState::forming || state == NodeState::paused;
  return waits && status.world.load() == 0;
}

/// Reports changes to the referee.
void SimDevice::look() {
  const auto failed = node_->membership().failed_copies();
  if (failed > failed_copies_) world_.faults.count(SimFault::copy_failed);
  failed_copies_ = failed;
  const runtime::AgreedState& state = node_->state();
  const runtime::NodeStatus& status = node_->status();
  if (state.stamp != seen_) {
    if (adopts(status) && status.state.load() != runtime::NodeState::connecting)
      world_.faults.count(SimFault::copy_taken);
    world_.referee.changed(index_, state, runtime::digest_of(state, *host_).value().hex(), adopts(status));
    seen_ = state.stamp;
  }
  if (status.view.load() == view_) return;
  view_ = status.view.load();
  run_ = node_->membership().fold().run.number;
  if (new_run_) world_.faults.count(SimFault::new_run);
  new_run_ = false;
  world_.referee.folded(node_->membership().fold());
}

/// The supervisor restarts it after any error. Permitted errors: no device has the saved state, the HELLO of
/// an ended process arrived late, the next record of the log was deleted, or the others are in another run.
bool SimDevice::may_end_for(const Error& error) {
  const auto says = [&](const char* words) { return error.message.find(words) != std::string::npos; };
  return error.code == ErrorCode::superseded || says(next_is_gone) || says("the group's saved state (") ||
         says("--new-run");
}

void SimDevice::ended() {
  const auto& error = node_->worker().ending().error;
  if (error && !may_end_for(*error)) world_.referee.found(id_of_device(index_) + " ended: " + error->message);
  const Duration away = error ? sim_started_again_after : away_;
  if (error) take_advice(*error);
  world_.faults.count(error               ? SimFault::given_up
                      : stop_.load() != 0 ? SimFault::stopped
                                          : SimFault::job_stopped);
  end_process();
  world_.referee.found(check_descriptors(id_of_device(index_), disk_.descriptors()));
  disk_.close_all();
  start_later(away);
}

void SimDevice::start_later(Duration after) {
  world_.later(after, [this] { start(); });
}

void SimDevice::end_process() {
  frozen_until_ = {};
  world_.wires.kill(id_of_device(index_));
  node_.reset();
}

void SimDevice::crash_after(int effects, const Crash& crash) {
  plan({effects, false, crash});
}

void SimDevice::crash_saving(int calls, const Crash& crash) {
  plan({calls, true, crash});
}

void SimDevice::plan(const Planned& planned) {
  planned_.push_back(planned);
  if (up() && planned_.size() == 1) arm();
}

void SimDevice::arm() {
  const Planned& next = planned_.front();
  if (next.effects == 0 && !next.on_disk && up()) return crash_as_planned(SimFault::crash_at_once);
  next.on_disk ? power_.fail_after_calls(next.effects) : power_.fail_after(next.effects);
  world_.later(crash_at_last, [this, crashes = crashes_] {
    if (up() && crashes == crashes_) crash_as_planned(SimFault::crash_at_last);
  });
}

void SimDevice::crash_as_planned(SimFault how) {
  const Crash crash = planned_.front().crash;
  planned_.pop_front();
  ++crashes_;
  die(crash, how);
}

void SimDevice::crash_now(const Crash& crash) {
  if (up()) die(crash, SimFault::crash_at_once);
}

void SimDevice::die(const Crash& crash, SimFault how) {
  world_.faults.count(how);
  end_process();
  disk_.close_all();
  world_.log.forget_unsent(index_, world_.runner.now());
  if (crash.seed) {
    world_.faults.count(SimFault::power_lost);
    Rng rng(*crash.seed);
    disk_.lose_power(rng);
  }
  power_.restore();
  start_later(crash.away);
}

void SimDevice::freeze(Duration time) {
  if (!up()) return;
  world_.faults.count(SimFault::frozen);
  frozen_until_ = std::max(frozen_until_, world_.runner.now() + time);
}

void SimDevice::stop(Duration away) {
  if (!up()) return;
  away_ = away;
  stop_.store(1);
  agents_->worker.wake.notify();
}

bool SimDevice::trains_in(std::uint64_t view) const {
  if (!up()) return false;
  const auto& status = const_cast<runtime::Node&>(*node_).status();
  return status.view.load() == view && status.world.load() > 0;
}

bool SimDevice::has(const Stamp& stamp) const {
  if (up() && node_->state().stamp >= stamp) return true;
  return std::ranges::any_of(disk_.whole_files_in(sim_folder),
                             [&](const std::string& path) { return stamp_of_file(path) >= stamp; });
}

}  // namespace rivulet::testing
