#include "tests/support/threaded_group.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/rng.h"
#include "runtime/process/runner.h"
#include "stream/open.h"
#include "sync/transport/gloo_transport.h"
#include "sync/transport/memory_transport.h"
#include "tests/support/wait.h"

namespace rivulet::testing {
namespace {

template <class T>
T must(Result<T> result) {
  if (result) return std::move(result).value();
  std::fprintf(stderr, "could not build the group: %s\n", result.error().message.c_str());
  std::abort();
}

runtime::LoadedConfig config_of(runtime::LoadedConfig loaded, std::size_t device) {
  runtime::Config& config = loaded.config;
  config.device.id = "device-" + std::to_string(device + 1);
  config.source.claims = {{config.source.topics.front(), static_cast<int>(device)}};
  return loaded;
}

std::unique_ptr<stream::RecordSource> source_of(const runtime::Config& config, double rate,
                                                const Clock& clock) {
  stream::SyntheticSourceConfig synthetic;
  synthetic.columns = static_cast<std::size_t>(config.decode.shape.front());
  synthetic.classes = config.model.classes;
  synthetic.seed = config.job.seed;
  synthetic.rows_per_second = [rate](TimePoint) { return rate; };
  return must(stream::open_synthetic_source(synthetic, clock));
}

struct ThreadedNode {
  runtime::StopRequest stop{0};
  runtime::ThreadRunner ingest_thread;
  runtime::ThreadRunner train_thread;
  std::unique_ptr<runtime::Node> node;
};

}  // namespace

struct ThreadedGroup::State {
  RealClock clock;
  NullMetrics metrics;
  std::unique_ptr<runtime::Logger> logger = runtime::make_null_logger();
  sync::membership::MemoryLog log;
  sync::MemoryNetwork network;
  ThreadedParts parts;
  std::vector<std::unique_ptr<ThreadedNode>> nodes;

  void add(const runtime::LoadedConfig& loaded, const runtime::StopAfter& stop_after, std::size_t device);
};

void ThreadedGroup::State::add(const runtime::LoadedConfig& loaded, const runtime::StopAfter& stop_after,
                               std::size_t device) {
  const runtime::LoadedConfig own = config_of(loaded, device);
  auto made = std::make_unique<ThreadedNode>();
  runtime::NodeDependencies outside{
      .ingest_clock = clock,
      .worker_clock = clock,
      .ingest_wake = made->ingest_thread,
      .worker_wake = made->train_thread,
      .source = source_of(own.config, parts.rows_per_second, clock),
      .device = devices::make_host_device(),
      .log = log.open(),
      .connect = parts.connect ? parts.connect(device, clock) : network.connect_for(clock),
      .metrics = metrics,
      .logger = *logger,
      .decisions = parts.decisions ? parts.decisions(device) : runtime::make_null_decision_log(),
      .stop = made->stop,
      .poll_wait = std::chrono::milliseconds(2),
      .nonce_seed = derive_seed(own.config.job.seed, "nonce", device)};
  made->node = must(runtime::Node::build(own, {.stop_after = stop_after}, parts.catalog, std::move(outside)));
  nodes.push_back(std::move(made));
}

ThreadedGroup::ThreadedGroup(const runtime::LoadedConfig& loaded, const runtime::StopAfter& stop_after,
                             ThreadedParts parts)
    : state_(std::make_unique<State>()) {
  state_->parts = std::move(parts);
  for (std::size_t i = 0; i < loaded.config.job.devices.max; ++i) state_->add(loaded, stop_after, i);
}

ThreadedGroup::~ThreadedGroup() = default;

bool ThreadedGroup::run(Duration deadline) {
  for (const auto& node : state_->nodes) {
    node->ingest_thread.start(node->node->ingest(), state_->clock);
    node->train_thread.start(node->node->worker(), state_->clock);
  }
  const auto ended = [](const auto& node) { return node->train_thread.finished(); };
  const bool all =
      wait_until([&] { return std::all_of(state_->nodes.begin(), state_->nodes.end(), ended); }, deadline);
  for (const auto& node : state_->nodes) {
    node->train_thread.stop();
    node->ingest_thread.stop();
  }
  for (const auto& node : state_->nodes) {
    node->train_thread.join();
    node->ingest_thread.join();
  }
  return all;
}

std::size_t ThreadedGroup::size() const noexcept {
  return state_->nodes.size();
}
runtime::Node& ThreadedGroup::node(std::size_t device) {
  return *state_->nodes.at(device)->node;
}

sync::Connect loopback_gloo(const Clock& clock) {
  sync::GlooConfig config;
  config.transport.progress_deadline = std::chrono::seconds(20);  // sanitizers slow everything down
  config.connect_deadline = std::chrono::seconds(20);
  return must(sync::make_gloo_connect(config, clock));
}

}  // namespace rivulet::testing
