// The wiring of a simulated group: the objects of a real device under a virtual clock, over in-memory wires.
#include "runtime/wiring/simulation.h"

#include <algorithm>
#include <cstdio>

#include "core/rng.h"
#include "devices/modeled_device.h"
#include "runtime/evaluator.h"
#include "runtime/node_config.h"
#include "runtime/status_json.h"
#include "runtime/wiring/simulation_source.h"
#include "stream/open.h"

namespace rivulet::runtime {
namespace {

/// One simulated device: its outside, and the node inside it.
struct SimulatedNode {
  VirtualClock ingest_clock;
  VirtualClock worker_clock;
  StopRequest stop{0};
  std::unique_ptr<Node> node;
};

/// Device i of the group: the same group keys, its own id and partition.
LoadedConfig config_of(const LoadedConfig& loaded, std::size_t device) {
  LoadedConfig out = loaded;
  char id[32];
  std::snprintf(id, sizeof id, "device-%02zu", device + 1);
  out.config.device.id = id;
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

}  // namespace

struct SimulatedGroup::State {
  SimulateOptions options;
  SimulatedParts parts;
  SimRunner runner;
  NullMetrics metrics;
  std::unique_ptr<Logger> logger = make_null_logger();
  sync::membership::MemoryLog log;
  sync::MemoryNetwork network;
  std::unique_ptr<stream::Dataset> data;
  std::vector<std::unique_ptr<SimulatedNode>> nodes;
  std::uint64_t steps = 0;

  State(const SimulateOptions& o, SimulatedParts p, Duration deadline)
      : options(o), parts(std::move(p)), network(o.link, {.progress_deadline = deadline}) {}

  Result<std::unique_ptr<stream::RecordSource>> open_source(const Config& config, std::size_t device,
                                                            const Clock& clock);
  Status add(const LoadedConfig& loaded, std::size_t device);
};

Result<std::unique_ptr<stream::RecordSource>> SimulatedGroup::State::open_source(const Config& config,
                                                                                 std::size_t device,
                                                                                 const Clock& clock) {
  if (parts.source) return parts.source(device, clock);
  const PartitionId id{0, static_cast<std::int32_t>(device)};
  const RateTrace trace = trace_of(options, device);
  if (data) return make_trace_source(*data, id, trace, config.job.seed, clock);
  stream::SyntheticSourceConfig synthetic;
  synthetic.partitions = {id};
  synthetic.columns = 1;
  for (const auto d : config.decode.shape) synthetic.columns *= static_cast<std::size_t>(d);
  synthetic.classes = config.train.loss == "cross_entropy" ? config.model.classes : 0;
  synthetic.seed = config.job.seed;
  synthetic.rows_per_second = [trace](TimePoint at) {
    return rate_at(trace, to_seconds(at.time_since_epoch()));
  };
  return stream::open_synthetic_source(synthetic, clock);
}

Status SimulatedGroup::State::add(const LoadedConfig& loaded, std::size_t device) {
  const LoadedConfig own = config_of(loaded, device);
  auto simulated = std::make_unique<SimulatedNode>();
  auto source = open_source(own.config, device, simulated->ingest_clock);
  if (!source) return source.error();
  Wake& ingest_wake = runner.make_wake();
  Wake& worker_wake = runner.make_wake();
  auto computer = parts.device ? parts.device(device, simulated->worker_clock)
                               : devices::make_modeled_device(options.profile, simulated->worker_clock);
  auto wires = network.connect_for(simulated->worker_clock);
  auto node = Node::build(
      own, {.stop_after = options.stop_after}, parts.catalog,
      NodeOutside{.ingest_clock = simulated->ingest_clock,
                  .worker_clock = simulated->worker_clock,
                  .ingest_wake = ingest_wake,
                  .worker_wake = worker_wake,
                  .source = std::move(source).value(),
                  .device = std::move(computer),
                  .log = log.open(),
                  .connect = parts.wires ? parts.wires(device, std::move(wires)) : std::move(wires),
                  .metrics = metrics,
                  .logger = *logger,
                  .decisions = parts.decisions ? parts.decisions(device) : make_null_decision_log(),
                  .stop = simulated->stop,
                  .nonce_seed = derive_seed(own.config.job.seed, "nonce", device)});
  if (!node) return node.error();
  simulated->node = std::move(node).value();
  runner.add(simulated->node->ingest(), simulated->ingest_clock, ingest_wake);
  runner.add(simulated->node->worker(), simulated->worker_clock, worker_wake);
  nodes.push_back(std::move(simulated));
  return ok();
}

SimulatedGroup::SimulatedGroup(std::unique_ptr<State> state) : state_(std::move(state)) {}
SimulatedGroup::~SimulatedGroup() = default;

Result<std::unique_ptr<SimulatedGroup>> SimulatedGroup::build(const LoadedConfig& loaded,
                                                              const SimulateOptions& options,
                                                              SimulatedParts parts) {
  auto state = std::make_unique<State>(options, std::move(parts), loaded.config.sync.deadline);
  if (!options.data.empty()) {
    auto data = stream::open_dataset(options.data, stream::Split::train);
    if (!data) return data.error();
    state->data = std::move(data).value();
  }
  for (std::size_t device = 0; device < loaded.config.job.devices; ++device)
    if (auto added = state->add(loaded, device); !added) return added.error();
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
void SimulatedGroup::ask_to_leave(std::size_t device) {
  state_->nodes.at(device)->stop.store(1);
}

bool SimulatedGroup::all_ended() const {
  return std::all_of(state_->nodes.begin(), state_->nodes.end(),
                     [](const auto& n) { return n->node->worker().ended(); });
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
  for (const auto& n : state_->nodes) {
    Node& node = *n->node;
    if (auto digest = digest_of(node.state(), node.device())) node.status().set_digest(digest.value().hex());
    DeviceSummary device = make_device_summary(node.status(), "");
    device.cpu_s =
        device.compute_s;  // what the profile charged; the process's own figures would not be reproducible
    device.max_rss_bytes = 0;
    s.devices.push_back(std::move(device));
    s.digests_compared = std::max<std::uint64_t>(s.digests_compared, node.status().digests_compared.load());
    const auto& error = node.worker().ending().error;
    s.parameters_equal = s.parameters_equal && (!error || error->code != ErrorCode::diverged) &&
                         s.devices.back().digest == s.devices.front().digest;
    seconds_training = std::max(seconds_training, node.status().seconds_training.load());
    rows = std::max(rows, node.state().rows);
    s.rounds = std::max(s.rounds, node.state().stamp.step);
  }
  char id[32];
  for (std::size_t i = 0; i < s.devices.size(); ++i) {
    std::snprintf(id, sizeof id, "device-%02zu", i + 1);
    s.devices[i].id = id;
  }
  s.rows_per_s = seconds_training > 0 ? static_cast<double>(rows) / seconds_training : 0;
  return s;
}

}  // namespace rivulet::runtime
