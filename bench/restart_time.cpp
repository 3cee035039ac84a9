// Measures the time from the restart of a killed device to its first step, while the others wait for it. Four
// LeNet-5 devices as processes on a real Kafka, 200 rows/s each; one is killed with kill -9 after it has
// saved a checkpoint, and restarted with the same command.
//   build/release/bench_restart_time [RESTARTS]
#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "bench/measure.h"
#include "bench/outside_tests.h"
#include "core/clock.h"
#include "tests/support/device_group.h"
#include "tests/support/kafka_server.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::bench;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

constexpr int devices = 4;
constexpr int victim = 2;

/// Returns the time of the first occurrence of each message in logfmt lines, in milliseconds of the day.
std::map<std::string, double> said(const std::string& log) {
  std::map<std::string, double> all;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    int hours = 0;
    int minutes = 0;
    double seconds = 0;
    const auto time = line.find('T');
    const auto begin = line.find("msg=");
    if (time == std::string::npos || begin == std::string::npos) continue;
    if (std::sscanf(line.c_str() + time, "T%d:%d:%lf", &hours, &minutes, &seconds) != 3) continue;
    const bool quoted = line[begin + 4] == '"';
    const auto from = begin + (quoted ? 5 : 4);
    const auto end = line.find(quoted ? '"' : ' ', from);
    all.emplace(line.substr(from, end - from), 1e3 * (3600 * hours + 60 * minutes + seconds));
  }
  return all;
}

double milliseconds_of_day() {
  return static_cast<double>(unix_time_ms() % (24LL * 3600 * 1000));
}

bool group_trains(DeviceGroup& group, int steps_more) {
  const auto steps = [&] {
    const auto status = group.status(0);
    return status.is_object() && status.value("world", 0) == devices ? status.value("steps", 0) : -1;
  };
  int first = -1;
  return wait_until(
      [&] {
        const int now = steps();
        if (first < 0) first = now;
        return first >= 0 && now >= first + steps_more;
      },
      30s);
}

/// Waits until the other devices have detected the loss and wait for it.
bool group_waits(DeviceGroup& group) {
  return wait_until(
      [&] {
        for (int i = 0; i < devices; ++i)
          if (i != victim && group.status(i).value("world", -1) != 0) return false;
        return true;
      },
      30s);
}

struct Marks {
  std::vector<double> main_s, loaded_s, starting_s, formed_s, step_s;
};

void restart(DeviceGroup& group, Marks& marks) {
  REQUIRE(group_trains(group, 30));  // 3 s, with a checkpoint
  group.device(victim).send_signal(SIGKILL);
  REQUIRE(group.device(victim).wait(10s));
  REQUIRE(group_waits(group));
  std::this_thread::sleep_for(500ms);
  const double began = milliseconds_of_day();
  group.start(victim);
  double first = -1;
  REQUIRE(wait_until(
      [&] {
        const auto status = group.status(victim);
        const auto at = status.is_object() ? status.find("first_step_s") : status.end();
        if (status.is_object() && at != status.end() && at->is_number()) first = at->get<double>();
        return first >= 0;
      },
      30s));
  const auto log = said(group.device(victim).errors());
  const auto mark = [&](std::vector<double>& to, const char* message) {
    const auto at = log.find(message);
    if (at != log.end()) to.push_back((at->second - began) / 1e3);
  };
  mark(marks.main_s, "memory planned");
  mark(marks.loaded_s, "checkpoint loaded");
  mark(marks.starting_s, "starting");
  mark(marks.formed_s, "group formed");
  marks.step_s.push_back(first);
}

}  // namespace

int main(int argc, char** argv) {
  const OutsideTests outside_tests;
  const int restarts = argc > 1 ? std::atoi(argv[1]) : 15;
  auto kafka = KafkaServer::start();
  REQUIRE(kafka);
  REQUIRE(create_topic(kafka.value()->brokers(), "mnist", devices));
  DeviceGroup group({.devices = devices,
                     .brokers = kafka.value()->brokers(),
                     .on_peer_loss = "reform",
                     .arguments = {"--set", "model.name=lenet5"}});
  group.feed(200);
  group.start_all();
  REQUIRE(group.formed(30s));
  Marks marks;
  for (int i = 0; i < restarts; ++i) restart(group, marks);
  fmt::print("from the start of the process, while the others wait:\n");
  fmt::print("  libraries loaded, main() plans its memory      {}\n", spread(marks.main_s, "s"));
  fmt::print("  own checkpoint loaded                          {}\n", spread(marks.loaded_s, "s"));
  fmt::print("  threads started                                {}\n", spread(marks.starting_s, "s"));
  fmt::print("  group formed                                   {}\n", spread(marks.formed_s, "s"));
  fmt::print("  first step applied                             {}, p95 {:.3g} s\n", spread(marks.step_s, "s"),
             percentile(marks.step_s, 0.95));
  return 0;
}
