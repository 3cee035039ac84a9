#include "tests/support/measured_group.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/rng.h"
#include "runtime/status/group_json.h"
#include "runtime/status/metrics/prometheus_sink.h"
#include "runtime/status/page/status_page.h"
#include "runtime/status/recent_rounds.h"
#include "runtime/status/status_json.h"
#include "runtime/wiring/sim_runner.h"
#include "stream/open.h"
#include "sync/membership/membership.h"
#include "sync/transport/memory_transport.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wrapped_source.h"

namespace rivulet::testing {
namespace {

/// Gives records a timestamp that lies `age` before they are read.
struct AgedSource final : WrappedSource {
  AgedSource(std::unique_ptr<stream::RecordSource> source, const std::vector<MeasuredGroup::Row>& all)
      : WrappedSource(std::move(source)), rows(all) {}
  Result<std::span<const Record>> poll(std::size_t max, Duration wait) override {
    const auto polled = inner->poll(max, wait);
    if (!polled) return polled;
    records.assign(polled.value().begin(), polled.value().end());
    for (Record& record : records) {
      const double age_s = rows.at(static_cast<std::size_t>(record.offset)).age_s;
      record.timestamp_ms = unix_time_ms() - static_cast<std::int64_t>(1000 * age_s);
    }
    return std::span<const Record>(records);
  }
  std::vector<MeasuredGroup::Row> rows;
  std::vector<Record> records;
};

std::unique_ptr<stream::RecordSource> source_of(const MeasuredGroup::Device& device, std::int32_t partition,
                                                const Clock& clock) {
  std::vector<stream::ScriptedRecord> script;
  for (const auto& row : device.rows) {
    const auto* bytes = reinterpret_cast<const std::byte*>(row.value.data());
    script.push_back({.due = TimePoint(from_seconds(row.due_s)),
                      .partition = {0, partition},
                      .offset = static_cast<std::int64_t>(script.size()),
                      .value = {bytes, bytes + row.value.size()}});
  }
  return std::make_unique<AgedSource>(
      stream::open_scripted_source({PartitionId{0, partition}}, std::move(script), clock), device.rows);
}

template <class T>
T or_die(Result<T> result) {
  if (result) return std::move(result).value();
  std::fprintf(stderr, "could not build the group: %s\n", result.error().message.c_str());
  std::abort();
}

/// One device: a node and its dependencies.
struct Measured {
  explicit Measured(runtime::SimRunner& runner)
      : ingest_wake(runner.make_wake()), worker_wake(runner.make_wake()), saver_wake(runner.make_wake()) {}
  VirtualClock ingest_clock, worker_clock, saver_clock;
  Wake& ingest_wake;
  Wake& worker_wake;
  Wake& saver_wake;
  runtime::StopRequest stop{0};
  TempDir folder;
  std::unique_ptr<runtime::PrometheusSink> sink = runtime::make_prometheus_sink();
  std::unique_ptr<runtime::Logger> log = or_die(runtime::make_logger("warn", "logfmt", *sink));
  runtime::RecentRounds board;
  runtime::NodeStatusText text;
  std::unique_ptr<runtime::Node> node;
};

}  // namespace

struct MeasuredGroup::State {
  State(const runtime::LoadedConfig& loaded, const runtime::Catalog& catalog,
        const runtime::StopAfter& stop_after, Duration latency)
      : loaded(loaded),
        catalog(catalog),
        stop_after(stop_after),
        network({.latency = latency}, {.progress_deadline = loaded.config.sync.deadline}) {}
  const runtime::LoadedConfig loaded;
  const runtime::Catalog catalog;
  const runtime::StopAfter stop_after;
  runtime::SimRunner runner;
  sync::membership::MemoryLog log;
  sync::MemoryNetwork network;
  std::vector<std::unique_ptr<Measured>> devices;
};

MeasuredGroup::MeasuredGroup(const runtime::LoadedConfig& loaded, const runtime::Catalog& catalog,
                             const runtime::StopAfter& stop_after, std::vector<Device> devices,
                             Duration latency)
    : state_(std::make_unique<State>(loaded, catalog, stop_after, latency)) {
  for (const Device& device : devices) join(device);
}

void MeasuredGroup::join(const Device& device) {
  auto& runner = state_->runner;
  const std::size_t i = state_->devices.size();
  const auto partition = static_cast<std::int32_t>(i);
  auto measured = std::make_unique<Measured>(runner);
  Measured& d = *measured;
  for (VirtualClock* clock : {&d.ingest_clock, &d.worker_clock, &d.saver_clock})
    clock->advance_by(runner.now() - clock->now());
  runtime::LoadedConfig own = state_->loaded;
  own.config.device.id = device.id;
  own.config.source.claims = {{own.config.source.topics.front(), partition}};
  d.text = {device.id, own.config.job.name, own.config.model.name, own.config.source.topics};
  d.node = or_die(runtime::Node::build(
      own, {.stop_after = state_->stop_after}, state_->catalog,
      {.ingest_clock = d.ingest_clock,
       .worker_clock = d.worker_clock,
       .ingest_wake = d.ingest_wake,
       .worker_wake = d.worker_wake,
       .source = source_of(device, partition, d.ingest_clock),
       .device = devices::make_modeled_device(device.profile, d.worker_clock),
       .log = state_->log.open(),
       .connect = state_->network.connect_for(d.worker_clock),
       .metrics = *d.sink,
       .logger = *d.log,
       .decisions = runtime::show_on_board(runtime::make_null_decision_log(), d.board, *d.sink),
       .stop = d.stop,
       .nonce_seed = derive_seed(own.config.job.seed, "nonce", i),
       .checkpoint_wake = &d.saver_wake,
       .checkpoints = d.folder.path().string()}));
  runner.add(d.node->ingest(), d.ingest_clock, d.ingest_wake);
  runner.add(d.node->worker(), d.worker_clock, d.worker_wake);
  runner.add(*d.node->checkpoints(), d.saver_clock, d.saver_wake);
  state_->devices.push_back(std::move(measured));
}

void MeasuredGroup::stop(std::size_t device) {
  state_->devices.at(device)->stop.store(1);
}

void MeasuredGroup::run_to(double second) {
  state_->runner.run_until([&] { return seconds() >= second; });
}

MeasuredGroup::~MeasuredGroup() = default;

void MeasuredGroup::append_to_log(const std::string& bytes) {
  REQUIRE(state_->log.open()->append(std::as_bytes(std::span(bytes))));
}

void MeasuredGroup::run(double seconds_longer) {
  const auto all_ended = [&] {
    return std::ranges::all_of(state_->devices, [](const auto& d) { return d->node->worker().ended(); });
  };
  state_->runner.run_until([&] { return all_ended() || seconds() > 100; });
  REQUIRE_MESSAGE(all_ended(), "the group has not ended: ", node(0).status().phrase());
  const double end = seconds() + seconds_longer;
  state_->runner.run_until([&] { return seconds() > end; });
  for (const auto& d : state_->devices) {
    const auto& error = d->node->worker().ending().error;
    CHECK_MESSAGE(!error, (error ? error->message : ""));
    REQUIRE(d->node->status().publish_deferred());
  }
}

double MeasuredGroup::seconds() const {
  return to_seconds(state_->runner.now().time_since_epoch());
}
runtime::Node& MeasuredGroup::node(std::size_t device) {
  return *state_->devices.at(device)->node;
}
MetricSheet MeasuredGroup::sheet(std::size_t device) const {
  return read_sheet(state_->devices.at(device)->sink->scrape());
}
std::string MeasuredGroup::status_json(std::size_t device) const {
  const Measured& d = *state_->devices.at(device);
  return runtime::status_json(d.node->status(), d.text);
}
std::string MeasuredGroup::group_json(std::size_t device) const {
  return runtime::group_json(state_->devices.at(device)->board.read());
}
std::string MeasuredGroup::page(std::size_t device) const {
  return runtime::status_page(status_json(device), group_json(device), "nonce");
}

double MeasuredGroup::checkpoint_bytes(std::size_t device) const {
  std::filesystem::file_time_type newest = std::filesystem::file_time_type::min();
  double bytes = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(state_->devices.at(device)->folder.path()))
    if (entry.path().extension() == ".ckpt" && entry.last_write_time() >= newest) {
      newest = entry.last_write_time();
      bytes = static_cast<double>(entry.file_size());
    }
  return bytes;
}

}  // namespace rivulet::testing
