#include "tests/support/real_node.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "core/rng.h"
#include "stream/open.h"
#include "tests/support/wait.h"

namespace rivulet::testing {

RealNode::RealNode(const runtime::LoadedConfig& loaded, const runtime::RunOptions& options,
                   const runtime::Catalog& catalog, const Clock& clock, Outside outside)
    : clock_(clock) {
  auto built = runtime::Node::build(
      loaded, options, catalog,
      runtime::NodeDependencies{
          .ingest_clock = clock_,
          .worker_clock = clock_,
          .ingest_wake = ingest_thread_,
          .worker_wake = train_thread_,
          .source = std::move(outside.source),
          .device = outside.device ? std::move(outside.device) : devices::make_host_device(),
          .log = std::move(outside.log),
          .connect = std::move(outside.connect),
          .metrics = metrics_,
          .logger = *log_,
          .decisions = outside.decisions ? std::move(outside.decisions) : runtime::make_null_decision_log(),
          .stop = stop_,
          .poll_wait = std::chrono::milliseconds(1),
          .nonce_seed = derive_seed(loaded.config.job.seed, loaded.config.device.id),
          .rules = outside.rules,
          .snapshots = outside.snapshots});
  if (!built) {
    std::fprintf(stderr, "could not build the node: %s\n", built.error().message.c_str());
    std::abort();
  }
  node_ = std::move(built).value();
}

RealNode::~RealNode() {
  train_thread_.stop();
  train_thread_.join();
  ingest_thread_.stop();
  ingest_thread_.join();
}

void RealNode::start() {
  ingest_thread_.start(node_->ingest(), clock_);
  train();
}

void RealNode::read(std::uint64_t rows) {
  ingest_thread_.start(node_->ingest(), clock_);
  const auto there = [&] { return node_->status().rows_consumed.load(); };
  if (wait_for_count(there, rows, std::chrono::seconds(10))) return;
  std::fprintf(stderr, "the device has not read its first %llu rows\n",
               static_cast<unsigned long long>(rows));
  std::abort();
}

void RealNode::train() {
  train_thread_.start(node_->worker(), clock_);
}

bool RealNode::wait(Duration deadline) {
  const TimePoint until = clock_.now() + deadline_slack * deadline;
  while (!train_thread_.finished()) {
    if (clock_.now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  train_thread_.join();
  ingest_thread_.stop();
  ingest_thread_.join();
  return true;
}

void RealNode::leave() {
  stop_.store(1);
  train_thread_.notify();
}

bool RealNode::ended() const {
  return train_thread_.finished();
}

runtime::LoadedConfig config_of_device(const runtime::LoadedConfig& loaded, std::size_t device) {
  runtime::LoadedConfig out = loaded;
  char id[32];
  std::snprintf(id, sizeof id, "device-%02zu", device + 1);
  out.config.device.id = id;
  out.config.source.claims = {{loaded.config.source.topics.front(), static_cast<int>(device)}};
  return out;
}

std::unique_ptr<stream::RecordSource> prepared_source(
    std::size_t device, std::size_t records, const std::function<std::vector<std::byte>(std::size_t)>& make,
    const Clock& clock) {
  const PartitionId partition{0, static_cast<std::int32_t>(device)};
  std::vector<stream::ScriptedRecord> script;
  for (std::size_t i = 0; i < records; ++i)
    script.push_back({TimePoint{}, partition, static_cast<std::int64_t>(i), make(i), false});
  return stream::open_scripted_source({partition}, std::move(script), clock);
}

std::vector<std::byte> linear_row(std::uint64_t seed, std::size_t device, std::size_t index,
                                  std::size_t columns, std::uint32_t classes) {
  Rng hidden = Rng::derive(seed, "hidden");
  Rng rng = Rng::derive(seed, "row", device * 1'000'003 + index);
  std::vector<float> row(columns + 1);
  for (std::size_t i = 1; i <= columns; ++i) row[i] = static_cast<float>(rng.normal());
  std::size_t best = 0;
  double best_score = -1e300;
  double score = 0;
  for (std::uint32_t k = 0; k < std::max(classes, 1U); ++k) {
    score = 0;
    for (std::size_t i = 1; i <= columns; ++i) score += hidden.normal() * static_cast<double>(row[i]);
    if (score > best_score) {
      best_score = score;
      best = k;
    }
  }
  row[0] = classes > 0 ? static_cast<float>(best) : static_cast<float>(score);
  std::vector<std::byte> bytes(row.size() * sizeof(float));
  std::memcpy(bytes.data(), row.data(), bytes.size());
  return bytes;
}

std::unique_ptr<stream::RecordSource> linear_source(const runtime::Config& config, std::size_t device,
                                                    std::size_t records, const Clock& clock) {
  const auto columns = static_cast<std::size_t>(config.decode.shape[0]);
  const std::uint32_t classes = config.train.loss == "cross_entropy" ? config.model.classes : 0;
  return prepared_source(
      device, records,
      [&](std::size_t i) { return linear_row(config.job.seed, device, i, columns, classes); }, clock);
}

}  // namespace rivulet::testing
