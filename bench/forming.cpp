// Measures how fast a large group on one machine forms, how fast it forms again without a device that is
// killed, and the threads of each device. Groups of 4, 16 and 32 devices with a linear model on the embedded
// broker, in turns: from the start of the first process until all report that the group has formed; the
// threads are those in /proc at that time. Then from the kill until all others report a group without that
// device.
//   build/release/bench_forming [ROUNDS [DEVICES...]]
#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "bench/measure.h"
#include "bench/outside_tests.h"
#include "core/clock.h"
#include "tests/support/device_group.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::bench;
using namespace rivulet::testing;

namespace {

struct Formed {
  std::vector<double> seconds, again, threads;
};

bool all_others_in(DeviceGroup& group, int lost, int devices) {
  for (int i = 0; i < devices; ++i) {
    if (i == lost) continue;
    const auto status = group.status(i);
    if (!status.is_object() || status.value("world", 0) != devices - 1) return false;
  }
  return true;
}

void form(int devices, Formed& formed) {
  DeviceGroup group({.devices = devices, .on_peer_loss = "reform"});
  const RealClock clock;
  const TimePoint began = clock.now();
  for (int i = 0; i < devices; ++i) group.start(i, {"--devices", "2-" + std::to_string(devices)});
  REQUIRE_MESSAGE(group.formed(std::chrono::seconds(60)), group.story());
  formed.seconds.push_back(to_seconds(clock.now() - began));
  for (int i = 0; i < devices; ++i) {
    const auto stats = group.device(i).stats();
    REQUIRE(stats);
    formed.threads.push_back(static_cast<double>(stats->threads));
  }
  const int lost = devices / 2;
  const TimePoint killed = clock.now();
  group.device(lost).send_signal(SIGKILL);
  REQUIRE_MESSAGE(wait_until([&] { return all_others_in(group, lost, devices); }, std::chrono::seconds(60)),
                  group.story());
  formed.again.push_back(to_seconds(clock.now() - killed));
}

}  // namespace

int main(int argc, char** argv) {
  const OutsideTests outside_tests;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  std::vector<int> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) sizes = {4, 16, 32};
  std::vector<Formed> formed(sizes.size());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < sizes.size(); ++i) form(sizes[i], formed[i]);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    fmt::print(
        "{:2} devices: formed after {}; without one that was killed after {}; threads of a device {}\n",
        sizes[i], spread(formed[i].seconds, "s"), spread(formed[i].again, "s"),
        spread(formed[i].threads, ""));
  return 0;
}
