// A group whose devices are killed and started again: the others stay, nothing is lost, nothing is trained
// twice in the history that survives. Numbered rows from a real Apache Kafka; the parameters themselves are
// the count.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "core/clock.h"
#include "core/rng.h"
#include "devices/device.h"
#include "runtime/http/http_server.h"
#include "runtime/state_file.h"
#include "tests/support/effort.h"
#include "tests/support/kafka_client.h"
#include "tests/support/kafka_server.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

constexpr int group_size = 3;

const char* const configuration = R"(version = 1
[job]
name = "tally"
devices = 3
[source]
topics = ["rows"]
[source.kafka.properties]
bootstrap.servers = "BROKERS"
[decode]
format = "raw"
raw = { label = "f32", features = "f32", shape = [1], scale = 1.0, shift = 0.0 }
[buffer]
rows = 64  # less than a device misses while it is away: what it read meanwhile does not reach the group's place
[batch]
max = 16
max_wait = "100ms"
[model]
name = "tally"
[train]
loss = "mse"
[sync]
deadline = "2s"
[checkpoint]
every = { rounds = 40, interval = "1s" }
[log]
format = "logfmt"
)";

/// The devices of one job, each with a partition of its own, and the rows that were produced for them.
class TallyGroup {
 public:
  TallyGroup(const std::string& brokers, int rows_per_partition)
      : brokers_(brokers), rows_per_partition_(rows_per_partition) {
    std::string text = configuration;
    text.replace(text.find("BROKERS"), 7, brokers);
    config_ = folder_.write("device.toml", text).string();
    for (int& port : ports_) port = free_port();
    produced_.fill(0);
  }

  void start(int device) {
    const auto i = static_cast<std::size_t>(device);
    processes_[i].reset();
    ProcessOptions options;
    options.command = {TALLY_DEVICE,
                       config_,
                       "device.id=device-" + std::to_string(device),
                       "source.partitions=[" + std::to_string(device) + "]",
                       "device.data_dir=" + directory(device),
                       "http.listen=127.0.0.1:" + std::to_string(ports_[i])};
    options.environment = {{"TALLY_ROWS", std::to_string(group_size * rows_per_partition_)}};
    auto started = Process::start(options);
    REQUIRE(started);
    processes_[i] = std::move(started).value();
  }
  /// Up to `rows` more of every partition.
  void produce(int rows) {
    std::vector<TestRecord> records;
    for (int p = 0; p < group_size; ++p) {
      auto& done = produced_[static_cast<std::size_t>(p)];
      for (int k = 0; k < rows && done < rows_per_partition_; ++k) {
        const std::array<float, 2> row{0, static_cast<float>(p * rows_per_partition_ + done++)};
        records.push_back({std::string(reinterpret_cast<const char*>(row.data()), sizeof row), "", p});
      }
    }
    if (!records.empty()) REQUIRE(testing::produce(brokers_, "rows", records));
  }
  [[nodiscard]] bool all_produced() const { return produced_.back() == rows_per_partition_; }
  [[nodiscard]] Process& process(int device) { return *processes_[static_cast<std::size_t>(device)]; }
  [[nodiscard]] std::string directory(int device) const {
    return (folder_.path() / ("device-" + std::to_string(device))).string();
  }
  [[nodiscard]] nlohmann::json status(int device) const {
    const auto page =
        runtime::http_get("127.0.0.1", ports_[static_cast<std::size_t>(device)], "/api/v1/status");
    auto parsed = page ? nlohmann::json::parse(page.value(), nullptr, false) : nlohmann::json();
    return parsed.is_object() ? parsed : nlohmann::json::object();
  }
  [[nodiscard]] std::int64_t group_rows(int device) const {
    return status(device).value("group_rows", std::int64_t{-1});
  }
  [[nodiscard]] std::int64_t newest_rows() const {
    std::int64_t rows = 0;
    for (int i = 0; i < group_size; ++i) rows = std::max(rows, group_rows(i));
    return rows;
  }
  [[nodiscard]] bool formed() const {
    for (int i = 0; i < group_size; ++i)
      if (status(i).value("world", 0) != group_size) return false;
    return true;
  }
  [[nodiscard]] int total_rows() const { return group_size * rows_per_partition_; }
  [[nodiscard]] bool all_trained(Duration deadline) const {
    return wait_until(
        [&] {
          for (int i = 0; i < group_size; ++i)
            if (group_rows(i) < total_rows()) return false;
          return true;
        },
        deadline);
  }
  std::string story() {
    std::string text;
    for (int i = 0; i < group_size; ++i)
      text += "--- device-" + std::to_string(i) + ":\n" + process(i).errors() + status(i).dump() + "\n";
    return text;
  }
  /// Ends all; every device has trained every row exactly once, and they agree on it.
  void check_ledger() {
    for (auto& process : processes_) process->send_signal(SIGTERM);
    std::set<std::string> digests;
    const auto device = devices::make_host_device();
    devices::ModelLayout layout;
    layout.parameters = static_cast<std::size_t>(total_rows());
    for (int i = 0; i < group_size; ++i) {
      const auto ended = process(i).wait(20s);
      INFO(story());
      REQUIRE(ended);
      CHECK(ended->code == 0);
      const auto read = runtime::read_state_file(directory(i) + "/final.state", {"tally", layout, *device});
      REQUIRE(read);
      digests.insert(read.value().digest.hex());
      check_counts(read.value().state);
    }
    CHECK(digests.size() == 1);
  }

 private:
  void check_counts(const runtime::AgreedState& state) const {
    int lost = 0;
    int again = 0;
    for (const float count : state.model.parameters().as<float>()) {
      lost += count < 0.5F ? 1 : 0;
      again += count > 1.5F ? 1 : 0;
    }
    CHECK(lost == 0);
    CHECK(again == 0);
    for (int p = 0; p < group_size; ++p) {
      const auto& progress = state.partitions.at({0, p});
      CHECK(progress.next == RowCursor{rows_per_partition_, 0});
      CHECK(progress.trained == static_cast<std::uint64_t>(rows_per_partition_));
      CHECK(progress.start == RowCursor{0, 0});
    }
  }

  const std::string brokers_;
  const int rows_per_partition_;
  TempDir folder_;
  std::string config_;
  std::array<int, group_size> ports_{};
  std::array<int, group_size> produced_{};
  std::array<std::unique_ptr<Process>, group_size> processes_;
};

}  // namespace

TEST_CASE("Re-forming: all devices are killed at once and go on from the state that the group has saved") {
  const auto seed = seed_or(1);
  CAPTURE(seed);
  Rng rng = Rng::derive(seed, "all at once");
  auto kafka = KafkaServer::start();
  REQUIRE(kafka);
  REQUIRE(create_topic(kafka.value()->brokers(), "rows", group_size));
  const int kills = repetitions(3, 20);
  TallyGroup group(kafka.value()->brokers(), 400 * (kills + 1));
  for (int i = 0; i < group_size; ++i) group.start(i);
  int resumed = 0;
  for (int k = 0; k < kills; ++k) {
    const auto before = group.newest_rows();
    for (int i = 0; i < 8; ++i) {
      group.produce(50);
      std::this_thread::sleep_for(std::chrono::milliseconds(100 + rng.below(100)));
    }
    INFO(group.story());
    REQUIRE(wait_until([&] { return group.newest_rows() > before && group.formed(); }, 30s));
    std::this_thread::sleep_for(std::chrono::milliseconds(rng.below(1500)));
    for (int i = 0; i < group_size; ++i) group.process(i).send_signal(SIGKILL);
    for (int i = 0; i < group_size; ++i) REQUIRE(group.process(i).wait(5s));
    // A disk may be lost, as long as checkpoint.quorum of them are not.
    const int wiped = k % 3 == 1 ? static_cast<int>(rng.below(group_size)) : -1;
    if (wiped >= 0) std::filesystem::remove_all(group.directory(wiped));
    for (int i = 0; i < group_size; ++i) group.start(i);
    REQUIRE(wait_until([&] { return group.formed(); }, 30s));
    for (int i = 0; i < group_size; ++i)
      resumed += contains(group.process(i).errors(), "checkpoint loaded") ? 1 : 0;
  }
  while (!group.all_produced()) group.produce(50);
  const bool trained = group.all_trained(60s);
  INFO(group.story());
  REQUIRE(trained);
  CHECK(resumed >= 2 * kills - 1);
  group.check_ledger();
}

TEST_CASE("Re-forming: devices are killed one after the other, the others stay, and every row counts once") {
  const auto seed = seed_or(1);
  CAPTURE(seed);
  Rng rng = Rng::derive(seed, "kills");
  auto kafka = KafkaServer::start();
  REQUIRE(kafka);
  REQUIRE(create_topic(kafka.value()->brokers(), "rows", group_size));
  const int kills = repetitions(4, 20);
  TallyGroup group(kafka.value()->brokers(), 500 * (kills + 1));
  for (int i = 0; i < group_size; ++i) group.start(i);
  for (int k = 0; k < kills; ++k) {
    const auto before = group.newest_rows();
    for (int i = 0; i < 10; ++i) {
      group.produce(50);
      std::this_thread::sleep_for(std::chrono::milliseconds(20 + rng.below(60)));
    }
    INFO(group.story());
    REQUIRE(wait_until([&] { return group.newest_rows() > before && group.formed(); }, 30s));
    const int victim = static_cast<int>(rng.below(group_size));
    CAPTURE(victim);
    group.process(victim).send_signal(SIGKILL);
    REQUIRE(group.process(victim).wait(5s));
    std::this_thread::sleep_for(std::chrono::milliseconds(rng.below(1500)));
    for (int i = 0; i < group_size; ++i)
      if (i != victim) CHECK(group.process(i).running());
    group.start(victim);
  }
  while (!group.all_produced()) group.produce(50);
  const bool trained = group.all_trained(60s);
  INFO(group.story());
  REQUIRE(trained);
  CHECK(group.status(0).value("view", 0) >= kills);
  group.check_ledger();
}
