// Wiring of a simulated group: the objects of a real device under a virtual clock and in-memory transport.
#include "runtime/wiring/simulation.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>

#include "core/rng.h"
#include "devices/modeled_device.h"
#include "runtime/node/evaluator.h"
#include "runtime/node/node_config.h"
#include "runtime/status/status_json.h"
#include "runtime/wiring/simulation_learner.h"
#include "runtime/wiring/simulation_source.h"
#include "stream/feed/deal.h"
#include "stream/open.h"

namespace rivulet::runtime {
namespace {

/// One simulated device: its dependencies and its node.
struct SimulatedNode {
  VirtualClock ingest_clock;
  VirtualClock worker_clock;
  VirtualClock donor_clock;
  StopRequest stop{0};
  Wake* ingest_wake = nullptr;
  Wake* worker_wake = nullptr;
  Wake* donor_wake = nullptr;
  std::unique_ptr<Node> node;
  bool killed = false;      ///< killed; its node is kept for the summary until the device restarts
  std::uint64_t lives = 1;  ///< number of starts, including this one
};

/// Executes the faults of a script when they are due.
class ScriptAgent final : public Agent {
 public:
  ScriptAgent(const std::vector<Fault>& faults, const Clock& clock, std::function<void(const Fault&)> happen)
      : faults_(faults.begin(), faults.end()), clock_(clock), happen_(std::move(happen)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "script"; }
  Turn step() override {
    while (!faults_.empty() && due() <= clock_.now()) {
      const Fault fault = faults_.front();
      faults_.pop_front();
      happen_(fault);
    }
    if (faults_.empty()) return {.finished = true};
    return {.wake_at = due()};
  }
  [[nodiscard]] bool will_start() const {
    return std::any_of(faults_.begin(), faults_.end(),
                       [](const Fault& f) { return f.kind == Fault::Kind::start; });
  }

 private:
  [[nodiscard]] TimePoint due() const { return TimePoint(from_seconds(faults_.front().at_s)); }
  std::deque<Fault> faults_;
  const Clock& clock_;
  std::function<void(const Fault&)> happen_;
};

std::string id_of(std::size_t device) {
  char id[32];
  std::snprintf(id, sizeof id, "device-%02zu", device + 1);
  return id;
}

/// Returns the configuration of device i: the same group keys, its own id and partition.
LoadedConfig config_of(const LoadedConfig& loaded, std::size_t device) {
  LoadedConfig out = loaded;
  out.config.device.id = id_of(device);
  const std::string topic =
      loaded.config.source.topics.empty() ? loaded.config.job.name : loaded.config.source.topics.front();
  out.config.source.topics = {topic};
  out.config.source.claims = {{topic, static_cast<int>(device)}};
  return out;
}

RateTrace trace_of(const SimulateOptions& options, std::size_t device) {
  if (options.rates.empty()) return {{0.0, 100.0}};
  return options.rates[device % options.rates.size()];
}

const devices::DeviceProfile& profile_of(const SimulateOptions& options, std::size_t device) {
  return options.profiles.empty() ? options.profile : options.profiles[device % options.profiles.size()];
}

}  // namespace

struct SimulatedGroup::State {
  SimulateOptions options;
  SimulatedParts parts;
  SimRunner runner;
  NullMetrics metrics;
  std::unique_ptr<Logger> logger = make_null_logger();
  sync::membership::MemoryLog log;
  std::unique_ptr<OrderedLog> read_by_all = log.open();
  sync::membership::SharedFold fold;
  sync::MemoryNetwork network;
  std::unique_ptr<stream::Dataset> data;
  std::vector<std::vector<std::uint32_t>> dealt;  ///< records of each device; empty: every device has all
  LoadedConfig loaded;
  std::unique_ptr<devices::Device> host = devices::make_host_device();
  std::unique_ptr<devices::Trainer> trainer;  ///< shared by all nodes: it is stateless
  devices::OptimizerEntry timing_optimizer;   ///< optimizer for timing_only
  std::vector<const devices::OptimizerEntry*> optimizers;
  std::vector<std::unique_ptr<SimulatedNode>> nodes;
  VirtualClock script_clock;
  std::unique_ptr<ScriptAgent> script;
  std::uint64_t steps = 0;

  State(const LoadedConfig& l, const SimulateOptions& o, SimulatedParts p)
      : options(o),
        parts(std::move(p)),
        fold(*read_by_all, l.config.job.name, {}),
        network(o.link, {.progress_deadline = l.config.sync.deadline}),
        loaded(l) {
    if (may_share()) network.gather(parts.check_every);
  }

  /// Whether devices may share messages and results. Sharing supports one link for all pairs, the default
  /// transport and host memory only.
  [[nodiscard]] bool may_share() const {
    const auto changes_link = [](const Fault& fault) { return fault.kind == Fault::Kind::link; };
    return !parts.separate && !parts.wires && !parts.device && options.own_links.empty() &&
           std::none_of(options.faults.begin(), options.faults.end(), changes_link);
  }

  Result<std::unique_ptr<stream::RecordSource>> open_source(const Config& config, std::size_t device,
                                                            const Clock& clock);
  Status deal();
  Status make_trainer();
  void compute_nothing();
  Status read_script();
  Result<std::unique_ptr<SimulatedNode>> start(std::size_t device, std::uint64_t lives);
  void happen(const Fault& fault);
  void kill(std::size_t device);
};

Status SimulatedGroup::State::deal() {
  if (options.labels_per_device == 0 && options.order == stream::Order::shuffled) return ok();
  const std::vector<double> alike(loaded.config.job.devices.max, 1.0);
  auto records =
      stream::feeding::deal(*data, alike, options.labels_per_device, loaded.config.job.seed, options.order);
  if (!records) return records.error();
  dealt = std::move(records).value();
  return ok();
}

Result<std::unique_ptr<stream::RecordSource>> SimulatedGroup::State::open_source(const Config& config,
                                                                                 std::size_t device,
                                                                                 const Clock& clock) {
  if (parts.source) return parts.source(device, clock);
  const PartitionId id{0, static_cast<std::int32_t>(device)};
  const RateTrace trace = trace_of(options, device);
  if (data)
    return make_trace_source(*data, dealt.empty() ? std::vector<std::uint32_t>() : dealt[device], id, trace,
                             config.job.seed, clock, options.order);
  auto synthetic = synthetic_config(config);
  synthetic.blank = options.timing_only;
  synthetic.rows_per_second = [trace](TimePoint at) {
    return rate_at(trace, to_seconds(at.time_since_epoch()));
  };
  return stream::open_synthetic_source(synthetic, clock);
}

/// Makes one trainer for all default devices; devices supplied by a test may need their own.
Status SimulatedGroup::State::make_trainer() {
  if (parts.device && !options.timing_only) return ok();
  const auto decoder = build_decoder(loaded.config, parts.catalog);
  if (!decoder) return decoder.error();
  if (const auto needs = needs_of_model(loaded.config, parts.catalog, decoder.value()->shape(), parts.stop);
      !needs)
    return needs.error();
  auto made = build_trainer(loaded.config, parts.catalog, decoder.value()->shape(), *host);
  if (!made) return made.error();
  trainer = std::move(made).value();
  if (options.timing_only) compute_nothing();
  return ok();
}

/// Replaces trainer and optimizer step by no-ops for timing_only.
void SimulatedGroup::State::compute_nothing() {
  trainer = make_timing_trainer(trainer->layout());
  for (const auto* entry : parts.catalog.optimizers) {
    if (entry->name != loaded.config.train.optimizer) continue;
    timing_optimizer = *entry;
    timing_optimizer.step = nullptr;
  }
  optimizers = {&timing_optimizer};
  parts.catalog.optimizers = optimizers;
}

Status SimulatedGroup::State::read_script() {
  for (std::size_t i = 0; i < loaded.config.job.devices.max && !options.own_links.empty(); ++i)
    network.set_own_link(id_of(i), options.own_links[i % options.own_links.size()]);
  if (options.faults.empty()) return ok();
  for (const Fault& fault : options.faults)
    if (fault.device >= nodes.size())
      return Error{ErrorCode::usage,
                   "the fault script names " + id_of(fault.device) + ", which is not in the group"};
  script = std::make_unique<ScriptAgent>(options.faults, script_clock, [this](const Fault& f) { happen(f); });
  runner.add(*script, script_clock, runner.make_wake());
  return ok();
}

void SimulatedGroup::State::kill(std::size_t device) {
  SimulatedNode& victim = *nodes[device];
  network.kill(id_of(device));
  runner.remove(*victim.ingest_wake);
  runner.remove(*victim.worker_wake);
  runner.remove(*victim.donor_wake);
  victim.killed = true;
}

void SimulatedGroup::State::happen(const Fault& fault) {
  switch (fault.kind) {
    case Fault::Kind::kill: return kill(fault.device);
    case Fault::Kind::stop: return nodes[fault.device]->stop.store(1);
    case Fault::Kind::link: return network.set_own_link(id_of(fault.device), fault.link);
    case Fault::Kind::start: break;
  }
  if (!nodes[fault.device]->killed) return;
  auto started = start(fault.device, nodes[fault.device]->lives + 1);
  RIVULET_CHECK(bool(started), "a killed device could not be rebuilt");
  nodes[fault.device] = std::move(started).value();
}

Result<std::unique_ptr<SimulatedNode>> SimulatedGroup::State::start(std::size_t device, std::uint64_t lives) {
  LoadedConfig own = config_of(loaded, device);
  if (own.config.device.speed == 0) own.config.device.speed = profile_of(options, device).rows_per_second;
  auto simulated = std::make_unique<SimulatedNode>();
  simulated->lives = lives;
  auto source = open_source(own.config, device, simulated->ingest_clock);
  if (!source) return source.error();
  // Done here, so that the partition of a late device also contains the rows from before its start.
  simulated->ingest_clock.advance_to(runner.now());
  simulated->worker_clock.advance_to(runner.now());
  simulated->donor_clock.advance_to(runner.now());
  Wake& ingest_wake = runner.make_wake();
  Wake& worker_wake = runner.make_wake();
  simulated->donor_wake = &runner.make_wake();
  simulated->ingest_wake = &ingest_wake;
  simulated->worker_wake = &worker_wake;
  auto computer = parts.device
                      ? parts.device(device, simulated->worker_clock)
                      : devices::make_modeled_device(profile_of(options, device), simulated->worker_clock);
  network.restart(id_of(device));
  auto wires = network.connect_for(simulated->worker_clock);
  auto node = Node::build(
      own, {.stop_after = options.stop_after}, parts.catalog,
      NodeDependencies{.ingest_clock = simulated->ingest_clock,
                       .worker_clock = simulated->worker_clock,
                       .ingest_wake = ingest_wake,
                       .worker_wake = worker_wake,
                       .source = std::move(source).value(),
                       .device = std::move(computer),
                       .lent_trainer = trainer.get(),
                       .log = log.open(&simulated->worker_clock),
                       .connect = parts.wires ? parts.wires(device, std::move(wires)) : std::move(wires),
                       .metrics = parts.metrics ? parts.metrics(device) : metrics,
                       .logger = *logger,
                       .decisions = parts.decisions ? parts.decisions(device) : make_null_decision_log(),
                       .stop = simulated->stop,
                       .nonce_seed = derive_seed(own.config.job.seed, "nonce", device + ((lives - 1) << 32U)),
                       .copies = CopyDependencies{.clock = simulated->donor_clock,
                                                  .wake = *simulated->donor_wake,
                                                  .give = network.connect_for(simulated->donor_clock),
                                                  .take = network.connect_for(simulated->worker_clock)},
                       .shared_fold = &fold});
  if (!node) return node.error();
  simulated->node = std::move(node).value();
  runner.add(simulated->node->ingest(), simulated->ingest_clock, ingest_wake);
  runner.add(simulated->node->worker(), simulated->worker_clock, worker_wake);
  if (StateDonor* donor = simulated->node->donor())
    runner.add(*donor, simulated->donor_clock, *simulated->donor_wake);
  return simulated;
}

SimulatedGroup::SimulatedGroup(std::unique_ptr<State> state) : state_(std::move(state)) {}
SimulatedGroup::~SimulatedGroup() = default;

Result<std::unique_ptr<SimulatedGroup>> SimulatedGroup::build(const LoadedConfig& loaded,
                                                              const SimulateOptions& options,
                                                              SimulatedParts parts) {
  auto state = std::make_unique<State>(loaded, options, std::move(parts));
  if (!options.data.empty()) {
    auto data = stream::open_dataset(options.data, stream::Split::train);
    if (!data) return data.error();
    state->data = std::move(data).value();
    if (auto dealt = state->deal(); !dealt) return dealt.error();
  }
  if (auto made = state->make_trainer(); !made) return made.error();
  for (std::size_t device = 0; device < loaded.config.job.devices.max; ++device) {
    auto started = state->start(device, 1);
    if (!started) return started.error();
    state->nodes.push_back(std::move(started).value());
  }
  if (auto read = state->read_script(); !read) return read.error();
  return std::unique_ptr<SimulatedGroup>(new SimulatedGroup(std::move(state)));
}

std::size_t SimulatedGroup::size() const noexcept {
  return state_->nodes.size();
}
Node& SimulatedGroup::node(std::size_t device) {
  return *state_->nodes.at(device)->node;
}
sync::MemoryNetwork& SimulatedGroup::network() {
  return state_->network;
}
double SimulatedGroup::seconds() const {
  return to_seconds(state_->runner.now().time_since_epoch());
}
void SimulatedGroup::request_leave(std::size_t device) {
  state_->nodes.at(device)->stop.store(1);
}

bool SimulatedGroup::all_ended() const {
  const auto& nodes = state_->nodes;
  // The others have ended together, and it waits outside with too few.
  const auto left_over = [](const Node& node) {
    return node.membership().fold().view.ended && node.membership().below_min();
  };
  const bool over = std::all_of(nodes.begin(), nodes.end(), [&](const auto& n) {
    return n->killed || n->node->worker().ended() || left_over(*n->node);
  });
  if (!over || !state_->script || !state_->script->will_start()) return over;
  return std::none_of(nodes.begin(), nodes.end(), [](const auto& n) { return n->killed; });
}

std::size_t SimulatedGroup::witness() const {
  const auto& nodes = state_->nodes;
  const auto alive = std::find_if(nodes.begin(), nodes.end(), [](const auto& n) { return !n->killed; });
  return alive == nodes.end() ? 0 : static_cast<std::size_t>(alive - nodes.begin());
}
bool SimulatedGroup::killed(std::size_t device) const {
  return state_->nodes.at(device)->killed;
}

std::uint64_t SimulatedGroup::run_until(const std::function<bool()>& done) {
  const std::uint64_t steps = state_->runner.run_until([&] { return all_ended() || done(); });
  state_->steps += steps;
  return steps;
}

Summary SimulatedGroup::summary() {
  Summary s;
  std::uint64_t rows = 0;
  double seconds_training = 0;
  std::map<Stamp, std::string>
      digests;  ///< of devices that were not killed; one that left has an older state
  for (const auto& n : state_->nodes) {
    Node& node = *n->node;
    if (auto digest = digest_of(node.state(), node.device())) node.status().set_digest(digest.value().hex());
    DeviceSummary device = make_device_summary(node.status(), "");
    device.cpu_s =
        device.compute_s;  // time charged by the profile; the process's own times would not be reproducible
    device.max_rss_bytes = 0;
    s.devices.push_back(std::move(device));
    s.digests_compared = std::max<std::uint64_t>(s.digests_compared, node.status().digests_compared.load());
    const auto& error = node.worker().ending().error;
    s.parameters_equal = s.parameters_equal && (!error || error->code != ErrorCode::diverged);
    if (!n->killed) {
      const auto& digest = digests.emplace(node.state().stamp, s.devices.back().digest).first->second;
      s.parameters_equal = s.parameters_equal && digest == s.devices.back().digest;
    }
    seconds_training = std::max(seconds_training, node.status().seconds_training.load());
    rows = std::max(rows, node.state().rows);
    s.rounds = std::max(s.rounds, node.state().stamp.step);
  }
  for (std::size_t i = 0; i < s.devices.size(); ++i) s.devices[i].id = id_of(i);
  s.rows_per_s = seconds_training > 0 ? static_cast<double>(rows) / seconds_training : 0;
  return s;
}

}  // namespace rivulet::runtime
