// The broker is away: killed and started again, alone or together with a device. Nothing is lost, nobody
// ends, nobody spins, no view forms without the log, and the group goes on by itself. Numbered rows from a
// real Apache Kafka; the parameters themselves are the count.
#include <doctest/doctest.h>

#include <array>
#include <csignal>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "core/clock.h"
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

constexpr int members = 3;
constexpr int rows_each = 1500;
constexpr double cpu_share_max = 0.2;  // of one core, while there is nothing to do

const char* const job = R"(version = 1
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

/// A broker, a job on it, and a producer of numbered rows.
class Site {
 public:
  Site() {
    auto started = KafkaServer::start();
    REQUIRE_MESSAGE(started, started.error().message);
    kafka_ = std::move(started).value();
    REQUIRE(create_topic(kafka_->brokers(), "rows", members));
    std::string text = job;
    text.replace(text.find("BROKERS"), 7, kafka_->brokers());
    config_ = folder_.write("device.toml", text).string();
    for (int& port : ports_) port = free_port();
    for (int i = 0; i < members; ++i) start(i);
  }
  KafkaServer& kafka() { return *kafka_; }
  Process& process(int device) { return *processes_[static_cast<std::size_t>(device)]; }

  void start(int device, const std::vector<std::string>& settings = {}) {
    const auto i = static_cast<std::size_t>(device);
    processes_[i].reset();
    ProcessOptions options;
    options.command = {TALLY_DEVICE,
                       config_,
                       "device.id=device-" + std::to_string(device),
                       "source.partitions=[" + std::to_string(device) + "]",
                       "device.data_dir=" + directory(device),
                       "http.listen=127.0.0.1:" + std::to_string(ports_[i])};
    options.command.insert(options.command.end(), settings.begin(), settings.end());
    options.environment = {{"TALLY_ROWS", std::to_string(members * rows_each)}};
    auto started = Process::start(options);
    REQUIRE(started);
    processes_[i] = std::move(started).value();
  }
  void produce(int rows) {
    std::vector<TestRecord> records;
    for (int p = 0; p < members; ++p)
      for (int k = produced_; k < std::min(produced_ + rows, rows_each); ++k) {
        const std::array<float, 2> row{0, static_cast<float>(p * rows_each + k)};
        records.push_back({std::string(reinterpret_cast<const char*>(row.data()), sizeof row), "", p});
      }
    produced_ = std::min(produced_ + rows, rows_each);
    const Status made = testing::produce(kafka_->brokers(), "rows", records);
    REQUIRE_MESSAGE(made, made.error().message);
  }
  [[nodiscard]] nlohmann::json status(int device) const {
    const auto page =
        runtime::http_get("127.0.0.1", ports_[static_cast<std::size_t>(device)], "/api/v1/status");
    auto parsed = page ? nlohmann::json::parse(page.value(), nullptr, false) : nlohmann::json();
    return parsed.is_object() ? parsed : nlohmann::json::object();
  }
  [[nodiscard]] int trained(int device) const { return status(device).value("group_rows", -1); }
  [[nodiscard]] bool all_trained(int rows, Duration deadline) const {
    return wait_until(
        [&] {
          for (int i = 0; i < members; ++i)
            if (trained(i) < rows) return false;
          return true;
        },
        deadline);
  }
  std::string story() {
    std::string text;
    for (int i = 0; i < members; ++i)
      text += "--- device-" + std::to_string(i) + ":\n" + process(i).errors() + status(i).dump() + "\n";
    return text;
  }
  /// Ends all; every row counts once on every device, those in `unread` not at all.
  void check_ledger(const std::set<int>& unread = {}) {
    for (auto& process : processes_) process->send_signal(SIGTERM);
    const auto device = devices::make_host_device();
    devices::ModelLayout layout;
    layout.parameters = static_cast<std::size_t>(members) * rows_each;
    std::set<std::string> digests;
    for (int i = 0; i < members; ++i) {
      const auto ended = process(i).wait(30s);
      INFO(story());
      REQUIRE(ended);
      CHECK(ended->code == 0);
      const auto read = runtime::read_state_file(directory(i) + "/final.state", {"tally", layout, *device});
      REQUIRE(read);
      digests.insert(read.value().digest.hex());
      const auto counts = read.value().state.model.parameters().as<float>();
      int wrong = 0;
      for (int row = 0; row < members * rows_each; ++row)
        wrong += counts[static_cast<std::size_t>(row)] != (unread.contains(row) ? 0.0F : 1.0F);
      CHECK(wrong == 0);
    }
    CHECK(digests.size() == 1);
  }

 private:
  [[nodiscard]] std::string directory(int device) const {
    return (folder_.path() / ("device-" + std::to_string(device))).string();
  }

  std::unique_ptr<KafkaServer> kafka_;
  TempDir folder_;
  std::string config_;
  std::array<int, members> ports_{};
  std::array<std::unique_ptr<Process>, members> processes_;
  int produced_ = 0;
};

Duration outage() {
  return std::chrono::seconds(repetitions(8, 20));
}

/// What each device may use of a processor while it waits.
class CpuWatch {
 public:
  explicit CpuWatch(Site& site) : site_(site), began_(clock_.now()), before_(read()) {}
  void check() {
    const double seconds = to_seconds(clock_.now() - began_);
    const auto now = read();
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (before_[i] < 0 || now[i] < 0) continue;
      const double share = (now[i] - before_[i]) / seconds;
      report_figure("CPU of a device while the broker is away", share * 100, "%");
      CHECK(share < cpu_share_max);
    }
  }

 private:
  std::array<double, members> read() {
    std::array<double, members> seconds{};
    for (int i = 0; i < members; ++i) {
      const auto stats = site_.process(i).running() ? site_.process(i).stats() : std::nullopt;
      seconds[static_cast<std::size_t>(i)] = stats ? stats->cpu_seconds : -1;
    }
    return seconds;
  }
  Site& site_;
  RealClock clock_;
  TimePoint began_;
  std::array<double, members> before_;
};

}  // namespace

TEST_CASE(
    "Outage: the broker is killed and started again, and the group goes on with every row counted once") {
  Site site;
  site.produce(500);
  const bool began = site.all_trained(members * 500, 60s);
  INFO(site.story());
  REQUIRE(began);
  std::array<pid_t, members> pids{};
  for (int i = 0; i < members; ++i) pids[static_cast<std::size_t>(i)] = site.process(i).pid();
  site.produce(300);  // on its way when the broker dies
  site.kafka().kill();
  std::this_thread::sleep_for(2s);
  CpuWatch cpu(site);
  std::this_thread::sleep_for(outage());
  cpu.check();
  for (int i = 0; i < members; ++i) {
    CHECK(site.process(i).running());
    CHECK(site.status(i).value("world", 0) == members);  // the view needs no log
  }
  const Status again = site.kafka().restart();
  REQUIRE_MESSAGE(again, again.error().message);
  site.produce(rows_each);
  const bool trained = site.all_trained(members * rows_each, 90s);
  INFO(site.story());
  REQUIRE(trained);
  for (int i = 0; i < members; ++i) {
    CHECK(site.process(i).pid() == pids[static_cast<std::size_t>(i)]);
    CHECK(site.process(i).running());
    CHECK(site.status(i).value("view", 0) == 1);
    CHECK(site.status(i)["partitions"][0].value("state", "") == "reading");
  }
  site.check_ledger();
}

TEST_CASE(
    "Outage: broker and device die together: nobody trains without the log, then all goes on by itself") {
  Site site;
  site.produce(500);
  const bool began = site.all_trained(members * 500, 60s);
  INFO(site.story());
  REQUIRE(began);
  site.produce(300);
  site.kafka().kill();
  site.process(1).send_signal(SIGKILL);
  REQUIRE(site.process(1).wait(5s));
  const bool noticed = wait_until(
      [&] {
        return site.status(0).value("state", "") == "forming" &&
               site.status(2).value("state", "") == "forming";
      },
      20s);
  INFO(site.story());
  REQUIRE(noticed);
  const std::array before{site.trained(0), site.trained(2)};
  CpuWatch cpu(site);
  const RealClock clock;
  site.start(1);  // whoever keeps processes running does so at once
  for (const auto end = clock.now() + outage(); clock.now() < end; std::this_thread::sleep_for(100ms)) {
    REQUIRE(site.process(0).running());
    REQUIRE(site.process(2).running());
    CHECK(site.status(0).value("world", -1) == 0);
    CHECK(site.status(2).value("world", -1) == 0);
  }
  cpu.check();
  CHECK(site.trained(0) == before[0]);
  CHECK(site.trained(2) == before[1]);
  const Status again = site.kafka().restart();
  REQUIRE_MESSAGE(again, again.error().message);
  if (!site.process(1).running()) site.start(1);
  site.produce(rows_each);
  const bool trained = site.all_trained(members * rows_each, 90s);
  INFO(site.story());
  REQUIRE(trained);
  CHECK(site.status(0).value("view", 0) >= 2);
  site.check_ledger();
}

TEST_CASE(
    "Gaps: a device whose rows were cut stays in the group without rows, or counts the gap and goes on") {
  Site site;
  site.produce(500);
  const bool began = site.all_trained(members * 500, 60s);
  INFO(site.story());
  REQUIRE(began);
  site.process(2).send_signal(SIGTERM);
  REQUIRE(site.process(2).wait(20s));
  site.produce(200);
  REQUIRE(delete_records(site.kafka().brokers(), "rows", 2, 600));
  site.start(2);
  const bool others = site.all_trained(members * 500 + 2 * 200, 60s);
  INFO(site.story());
  REQUIRE(others);
  const auto partition = [&] { return site.status(2)["partitions"][0]; };
  CHECK(wait_until([&] { return partition().value("state", "") == "stopped"; }, 10s));
  CHECK(partition().value("topic", "") == "rows");
  CHECK(partition().value("partition", -1) == 2);
  CHECK(partition().value("next_offset", -1) == 500);
  CHECK(partition().value("low_watermark", -1) == 600);
  CHECK(partition().value("high_watermark", -1) == 700);
  CHECK(contains(partition().value("reason", ""), "topic \"rows\", partition 2: offset 500 is not there"));
  CHECK(contains(site.process(2).errors(), "every partition of this device is stopped"));
  site.produce(100);
  CHECK(wait_until([&] { return site.trained(0) == members * 500 + 2 * 300; }, 30s));
  CHECK(site.process(2).running());
  CHECK(site.status(2).value("world", 0) == members);

  site.process(2).send_signal(SIGTERM);
  REQUIRE(site.process(2).wait(20s));
  site.start(2, {"source.on_gap=count"});
  site.produce(rows_each);
  const bool trained = site.all_trained(members * rows_each - 100, 90s);
  INFO(site.story());
  REQUIRE(trained);
  CHECK(partition().value("skipped", -1) == 100);
  CHECK(contains(site.process(2).errors(), "offsets that were deleted unread are gone over"));
  std::set<int> unread;
  for (int k = 500; k < 600; ++k) unread.insert(2 * rows_each + k);
  site.check_ledger(unread);
}
