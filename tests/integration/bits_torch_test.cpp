// The same rows in four processes over Gloo and in the simulation: the same bits after 200 rounds.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/rng.h"
#include "runtime/wiring/simulation.h"
#include "stream/dataset.h"
#include "stream/open.h"
#include "sync/transport/gloo_transport.h"
#include "tests/support/effort.h"
#include "tests/support/group_support.h"
#include "tests/support/places.h"
#include "tests/support/process.h"
#include "tests/support/real_node.h"

#include <doctest/doctest.h>

using namespace rivulet;
using namespace rivulet::testing;

namespace {

constexpr std::uint32_t devices_in_group = 4;
constexpr std::size_t records_per_device = 2600;
constexpr std::uint64_t rounds = 200;

runtime::LoadedConfig job(const std::string& model) {
  runtime::LoadedConfig loaded;
  auto& c = loaded.config;
  c.job.name = "bits-" + model;
  c.job.devices = devices_in_group;
  c.source.topics = {"rows"};
  agree_on_every_batch(c);
  c.batch.policy = "scripted";
  c.model.name = model;
  c.buffer.rows = 4096;
  if (model == "cnn") {
    c.decode.shape = {3, 32, 32};
    c.decode.scale = {0.0157};
    c.decode.shift = {-2.0};
  }
  return loaded;
}

/// Local steps without a request take the waiting rows, whose number depends on timing.
void take_six_rows(runtime::Config& c) {
  c.batch.policy = "fixed";
  c.batch.rows = 6;
  c.batch.max_wait = std::chrono::minutes(1);  // no step is skipped because rows are late
}

/// Raw u8 rows: MNIST for lenet5, seeded noise with a learnable tint for cnn.
std::unique_ptr<stream::RecordSource> rows_of(const runtime::Config& c, std::size_t device,
                                              const Clock& clock) {
  if (c.model.name == "cnn")
    return prepared_source(
        device, records_per_device,
        [device](std::size_t i) {
          Rng rng = Rng::derive(5, "noise", device * 100'000 + i);
          std::vector<std::byte> row(1 + 3 * 32 * 32);
          const auto label = rng.below(10);
          row[0] = static_cast<std::byte>(label);
          for (std::size_t k = 1; k < row.size(); ++k)
            row[k] = static_cast<std::byte>(rng.below(180) + 7 * label);
          return row;
        },
        clock);
  auto data = stream::open_dataset(source_path("examples/mnist/data"), stream::Split::train);
  REQUIRE(data);
  return prepared_source(
      device, records_per_device,
      [&](std::size_t i) {
        const auto value = data.value()->value(device * records_per_device + i);
        return std::vector<std::byte>(value.begin(), value.end());
      },
      clock);
}

/// Results of a run, sent through a pipe.
struct Outcome {
  char digest[33] = {};
  std::uint64_t steps = 0;
  std::uint64_t rows = 0;
  char error[200] = {};
};

Outcome outcome_of(runtime::Node& node) {
  Outcome out;
  const auto digest = runtime::digest_of(node.state(), node.device());
  if (digest) std::strncpy(out.digest, digest.value().hex().c_str(), 32);
  out.steps = node.state().stamp.step;
  out.rows = node.state().rows;
  if (const auto& error = node.worker().ending().error)
    std::strncpy(out.error, error->message.c_str(), sizeof out.error - 1);
  return out;
}

Outcome one_process(const runtime::LoadedConfig& loaded, std::size_t device, const std::string& brokers) {
  devices::prepare_process(1);
  const RealClock clock;
  const PartsCatalog parts;
  const auto own = config_of_device(loaded, device);
  RealNode::Outside outside;
  outside.source = rows_of(own.config, device, clock);
  auto log = stream::open_kafka_log({.properties = {{"bootstrap.servers", brokers}},
                                     .topic = "rivulet." + loaded.config.job.name + ".control",
                                     .client_id = own.config.device.id});
  if (!log) return {};
  outside.log = std::move(log).value();
  sync::GlooConfig gloo;
  gloo.transport.progress_deadline = std::chrono::seconds(30);
  outside.connect = std::move(sync::make_gloo_connect(gloo, clock)).value();
  RealNode node(own, {.stop_after = {.rounds = rounds}}, parts.catalog(), clock, std::move(outside));
  node.read(std::min<std::uint64_t>(records_per_device, own.config.buffer.rows));
  node.train();
  node.wait(std::chrono::seconds(240));
  return outcome_of(node.node());
}

Outcome simulated(const runtime::LoadedConfig& loaded) {
  devices::prepare_process(1);
  const PartsCatalog parts;
  runtime::SimulatedParts outside;
  outside.catalog = parts.catalog();
  outside.source = [&](std::size_t device, const Clock& clock) {
    return rows_of(loaded.config, device, clock);
  };
  runtime::SimulateOptions options;
  options.stop_after.rounds = rounds;
  options.link = {std::chrono::milliseconds(1), 1e8};
  auto group = build_group(loaded, options, std::move(outside));
  run_to_end(*group);
  return outcome_of(group->node(2));
}

/// Runs `work` in a separate process: this one never starts a thread of LibTorch, so it may fork again.
struct Forked {
  pid_t pid = -1;
  int pipe = -1;
  template <class Work>
  explicit Forked(Work work) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      const Outcome out = work();
      const bool told = write(ends[1], &out, sizeof out) == static_cast<ssize_t>(sizeof out);
      _exit(told ? 0 : 1);
    }
    close(ends[1]);
    pipe = ends[0];
  }
  Outcome outcome() {
    Outcome out;
    const bool whole = read(pipe, &out, sizeof out) == static_cast<ssize_t>(sizeof out);
    close(pipe);
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK(whole);
    return out;
  }
};

void same_bits(const runtime::LoadedConfig& loaded) {
  auto broker = Process::start(
      {.command = {rivulet_binary(), "broker", "--job", loaded.config.job.name, "--topic", "rows:4"}});
  REQUIRE(broker);
  REQUIRE(broker.value()->wait_for_output("runs until", std::chrono::seconds(20)));
  const std::string said = broker.value()->output();
  const std::string key = "bootstrap.servers=";
  const std::string brokers = said.substr(key.size(), said.find('\n') - key.size());
  std::vector<Forked> processes;
  for (std::size_t device = 0; device < devices_in_group; ++device)
    processes.emplace_back([&, device] { return one_process(loaded, device, brokers); });
  std::vector<Outcome> real;
  for (auto& p : processes) real.push_back(p.outcome());
  const Outcome expected = Forked([&] { return simulated(loaded); }).outcome();
  CHECK(expected.steps == rounds);
  CHECK(expected.rows > rounds * devices_in_group * 5);
  for (const auto& r : real) {
    INFO(r.error);
    CHECK(r.steps == rounds);
    CHECK(r.rows == expected.rows);
    CHECK(std::string(r.digest) == std::string(expected.digest));
  }
}

}  // namespace

TEST_CASE("Bits: lenet5, 200 rounds, four processes over Gloo and the simulation agree to the last bit") {
  same_bits(job("lenet5"));
}
TEST_CASE("Bits: lenet5 with Adam, 200 rounds, four processes over Gloo and the simulation agree") {
  auto loaded = job("lenet5");
  loaded.config.train.optimizer = "adam";
  loaded.config.train.lr = 0.001;
  same_bits(loaded);
}
TEST_CASE("Bits: cnn with a hundredth of its gradient, four processes over Gloo and the simulation agree") {
  auto loaded = job("cnn");
  take_six_rows(loaded.config);
  loaded.config.compression.policy = "fixed";
  loaded.config.settings.set("compression.compressor", std::string("random-k"));
  same_bits(loaded);
}
TEST_CASE(
    "Bits: lenet5 with own steps, topk, slices summed by owners: four processes and the simulation agree") {
  auto loaded = job("lenet5");
  auto& c = loaded.config;
  take_six_rows(c);
  c.sync.policy = "periodic";
  c.settings.set("sync.local_steps", std::int64_t{2});
  c.sync.collective = "two_sided";
  c.compression.policy = "fixed";
  c.settings.set("compression.compressor", std::string("topk"));
  c.settings.set("compression.keep", 0.05);
  same_bits(loaded);
}
TEST_CASE("Bits: cnn with batch norm, 200 rounds, four processes over Gloo and the simulation agree") {
  same_bits(job("cnn"));
}
