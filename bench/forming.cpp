// Measures how fast a large group on one machine forms, and the threads of each device. Groups of 4, 16 and
// 32 devices with a linear model on the embedded broker, in turns: from the start of the first process until
// all report that the group has formed; the threads are those in /proc at that time.
//   build/release/bench_forming [ROUNDS]
#include <doctest/doctest.h>

#include <cstdlib>

#include "bench/measure.h"
#include "bench/outside_tests.h"
#include "core/clock.h"
#include "tests/support/device_group.h"

using namespace rivulet;
using namespace rivulet::bench;
using namespace rivulet::testing;

namespace {

constexpr int sizes[] = {4, 16, 32};

struct Formed {
  std::vector<double> seconds, threads;
};

void form(int devices, Formed& formed) {
  DeviceGroup group({.devices = devices});
  const RealClock clock;
  const TimePoint began = clock.now();
  group.start_all();
  REQUIRE_MESSAGE(group.formed(std::chrono::seconds(60)), group.story());
  formed.seconds.push_back(to_seconds(clock.now() - began));
  for (int i = 0; i < devices; ++i) {
    const auto stats = group.device(i).stats();
    REQUIRE(stats);
    formed.threads.push_back(static_cast<double>(stats->threads));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const OutsideTests outside_tests;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  Formed formed[std::size(sizes)];
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < std::size(sizes); ++i) form(sizes[i], formed[i]);
  for (std::size_t i = 0; i < std::size(sizes); ++i)
    fmt::print("{:2} devices: formed after {}; threads of a device {}\n", sizes[i],
               spread(formed[i].seconds, "s"), spread(formed[i].threads, ""));
  return 0;
}
