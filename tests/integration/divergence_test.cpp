// A value that makes the model diverge, in a group of real devices: it rolls back to its last good
// checkpoint.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/rng.h"
#include "tests/support/network.h"
#include "tests/support/rivulet_program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

constexpr int none = -1;

/// A plane through three features of this size, with one absurd value.
void write_rows(const std::filesystem::path& path, int rows, int absurd_at, double size = 1) {
  std::ofstream out(path);
  Rng rng(3);
  for (int i = 0; i < rows; ++i) {
    double x[3];
    for (double& one : x) one = size * rng.normal();
    const bool above = 2 * x[0] - x[1] + 0.5 * x[2] > 0;
    if (i == absurd_at) x[0] = above ? -1e6 : 1e6;
    out << fmt::format("{:.4f},{:.4f},{:.4f},{}\n", x[0], x[1], x[2], above ? 1 : 0);
  }
}

/// Rows reach the model unchanged: neither normalized nor clipped.
std::string job(int devices, const std::string& more) {
  return fmt::format(
      "[job]\nname = \"planes\"\ndevices = {}\nseed = 5\n[source]\ntopics = [\"planes\"]\n[decode]\n"
      "format = \"csv\"\n[decode.csv]\ncolumns = [\"a\", \"b\", \"c\", \"y\"]\nfeatures = [\"a\", \"b\", "
      "\"c\"]\n"
      "target = \"y\"\nscale = 1\n[model]\nname = \"linear\"\nclasses = 2\n[train]\nclip_grad_norm = 0\n"
      "[train.optimizer]\nlr = 0.5\n[checkpoint.every]\nrounds = 20\n[checkpoint]\nkeep = 2\n{}",
      devices, more);
}

struct Running {
  std::unique_ptr<Process> process;
  int port = 0;
  [[nodiscard]] nlohmann::json status() const {
    const auto told = rivulet_run({"status", "127.0.0.1:" + std::to_string(port), "--json"});
    return nlohmann::json::parse(told.output, nullptr, false);
  }
  [[nodiscard]] double number(const char* name) const {
    const auto now = status();
    if (!now.is_object() || !now.contains("status")) return -1;
    const auto& value = now["status"][name];
    return value.is_number() ? value.get<double>() : -1;
  }
};

struct Group {
  TempDir folder;
  Broker broker;
  std::vector<Running> devices;

  Group(int count, const std::string& more)
      : broker(start_broker("planes", "planes:" + std::to_string(count))) {
    folder.write("device.toml", job(count, more));
    for (int i = 0; i < count; ++i) devices.push_back(start(i));
    for (const auto& one : devices) {
      INFO(one.process->errors());
      REQUIRE(wait_until([&] { return one.number("world") == count; }, 30s));
    }
  }
  [[nodiscard]] Running start(int device) const {
    Running one;
    one.port = free_port();
    auto started = Process::start(rivulet_with(
        {"run", "--config", (folder.path() / "device.toml").string(), "--brokers", broker.address, "--id",
         "d" + std::to_string(device), "--partitions", std::to_string(device), "--data-dir",
         data_of(device).string(), "--http", "127.0.0.1:" + std::to_string(one.port), "--json"}));
    REQUIRE(started);
    one.process = std::move(started).value();
    return one;
  }
  [[nodiscard]] std::filesystem::path data_of(int device) const {
    return folder.path() / ("d" + std::to_string(device));
  }
  [[nodiscard]] std::unique_ptr<Process> start_feed(int rows, int absurd_at, double size = 1) const {
    const auto file = folder.path() / "rows.csv";
    write_rows(file, rows, absurd_at, size);
    auto feed =
        Process::start(rivulet_with({"feed", file.string(), "--brokers", broker.address, "--topic", "planes",
                                     "--rates", "2000", "--in-order", "--job", "planes", "--pace"}));
    REQUIRE(feed);
    return std::move(feed).value();
  }
  static void end_feed(Process& feed) {
    const auto fed = feed.wait(300s);
    REQUIRE(fed);
    REQUIRE_MESSAGE(fed->code == 0, feed.errors());
  }
  void feed(int rows, int absurd_at, double size = 1) const { end_feed(*start_feed(rows, absurd_at, size)); }
  void all_learn() const {
    for (const auto& one : devices) {
      INFO(one.process->errors());
      CHECK(
          wait_until([&] { return one.number("rows_waiting") == 0 && one.number("accuracy") > 0.97; }, 60s));
    }
  }
  void check_logs() const {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const auto log = (data_of(static_cast<int>(i)) / "decisions.jsonl").string();
      const auto plans = rivulet_run({"decisions", "replay", log});
      CHECK_MESSAGE(plans.status.code == 0, plans.errors);
    }
  }
};

}  // namespace

TEST_CASE(
    "Divergence: three devices go back together, one without its files and one that dies, and are right on "
    "97 "
    "rows of 100 again") {
  // Local steps would be rejected before the model diverges.
  Group group(3, "[sync]\npolicy = \"every\"\n");
  group.feed(30'000, none);
  group.all_learn();
  // One device has lost its files and gets the state from its peers.
  std::size_t lost = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(group.data_of(1)))
    if (file.path().extension() == ".ckpt" && std::filesystem::remove(file.path())) ++lost;
  REQUIRE(lost > 0);
  const auto feed = group.start_feed(40'000, 0);
  REQUIRE(
      wait_until([&] { return contains(group.devices[0].process->errors(), "the group rolls back"); }, 120s));
  // Another one dies during the rollback.
  group.devices[2].process->send_signal(SIGKILL);
  REQUIRE(group.devices[2].process->wait(10s));
  group.devices[2] = group.start(2);
  group.end_feed(*feed);
  group.feed(6000, none);  // for devices that return late
  group.all_learn();
  for (const auto& one : group.devices) one.process->send_signal(SIGTERM);
  for (const auto& one : group.devices) {
    INFO(one.process->errors());
    REQUIRE(one.process->wait(60s));
    CHECK_FALSE(contains(one.process->errors(), "the initial model of the job"));
  }
  for (const int i : {0, 1}) {
    const std::string said = group.devices[i].process->errors();
    CHECK(contains(said, "the model has diverged: the group rolls back"));
    CHECK(contains(said, "rows_since=\"read again\""));
  }
  CHECK(contains(group.devices[1].process->errors(), "state adopted"));
  group.check_logs();
}

TEST_CASE("Divergence: a group that goes back two times in vain ends, with a sentence and with 78") {
  Group group(2, "");
  // More rows than the group can use: each judgement takes some thousand of them.
  const auto feed = group.start_feed(400'000, none, 1e6);
  for (const auto& one : group.devices) {
    const auto ended = one.process->wait(60s);
    INFO(one.process->errors());
    REQUIRE(ended);
    CHECK(ended->code == 78);
    CHECK(contains(one.process->errors(), "the model has diverged again, after the group has rolled back"));
    CHECK(contains(one.process->errors(), "rows_since=skipped"));
  }
  feed->send_signal(SIGKILL);
  group.check_logs();
}
