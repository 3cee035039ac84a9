// Measures how fast a group recovers. Three devices in separate network namespaces, links of 40 Mbit/s, a
// real Kafka, 100 rows/s each, default settings. In each round, one after the other:
//   kill     kill -9 of one device, restarted at once: from its start to the next round of the whole group
//   restart  SIGTERM to one device, restarted after its exit: the same
//   all      SIGTERM to all devices, then restart of all: from the last start
//   link     one device's link is down for 6 to 14 s: from its return to the next round of the whole group
//   end      SIGTERM to one device at a random time, in turn while it trains, while its link is down, while a
//            peer hangs, or after a peer was killed: until it exits
//   build/release/bench_recovery [ROUNDS [SEED]]
#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "bench/measure.h"
#include "bench/outside_tests.h"
#include "core/clock.h"
#include "core/rng.h"
#include "tests/support/machines.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::bench;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

constexpr int devices = 3;

double seconds_since(TimePoint then) {
  return to_seconds(RealClock().now() - then);
}

struct Times {
  std::vector<double> kill, restart, all, link, end;
};

class Recovery {
 public:
  explicit Recovery(std::uint64_t seed) : rng_(seed), machines_(devices) { machines_.train(5); }

  void run(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      times_.kill.push_back(kill_one());
      times_.restart.push_back(restart_one());
      times_.all.push_back(restart_all());
      times_.link.push_back(cut_one());
      times_.end.push_back(end_one(i % 4));
      fmt::print(stderr, "{}: kill {:.2f}, restart {:.2f}, all {:.2f}, link {:.2f}, end {:.2f} s\n", i + 1,
                 times_.kill.back(), times_.restart.back(), times_.all.back(), times_.link.back(),
                 times_.end.back());
    }
  }

  void report() const {
    const auto line = [](const char* what, const std::vector<double>& values) {
      fmt::print("{:<44} {}, p95 {:.3g} s, maximum {:.3g} s\n", what, spread(values, "s"),
                 percentile(values, 0.95), percentile(values, 1));
    };
    line("kill -9, restart, until the next round:", times_.kill);
    line("SIGTERM, restart, until the next round:", times_.restart);
    line("SIGTERM to all, restart, until the next round:", times_.all);
    line("link down 6 to 14 s, until the next round:", times_.link);
    line("SIGTERM at a random time, until exit:", times_.end);
  }

 private:
  int drawn_device() { return static_cast<int>(rng_.below(devices)); }

  /// Trains for 2 to 5 s, so that events occur in all phases.
  void train_a_while() {
    const int before = rounds();
    REQUIRE_MESSAGE(wait_until([&] { return rounds() > before; }, 30s), machines_.group->story());
    std::this_thread::sleep_for(std::chrono::milliseconds(2000 + rng_.below(3000)));
  }

  [[nodiscard]] int rounds(int device = 0) const { return machines_.rounds_of_all(device); }

  /// Waits until `device` has applied more than `before` rounds with the whole group; -1: more than it had
  /// when the group was complete. Returns the seconds since `then`.
  double next_round(int device, TimePoint then, int before = -1) {
    const auto applied = [&] {
      const int now = rounds(device);
      if (before < 0) before = now;
      return before >= 0 && now > before;
    };
    REQUIRE_MESSAGE(wait_until(applied, 60s), machines_.group->story());
    return seconds_since(then);
  }

  void end(int device, int signal) {
    machines_.group->device(device).send_signal(signal);
    REQUIRE_MESSAGE(machines_.group->device(device).wait(20s), machines_.group->story());
  }

  double start_again(int device) {
    const TimePoint began = RealClock().now();
    machines_.group->start(device);
    return next_round(device, began, 0);
  }

  double kill_one() {
    train_a_while();
    const int device = drawn_device();
    end(device, SIGKILL);
    return start_again(device);
  }

  double restart_one() {
    train_a_while();
    const int device = drawn_device();
    end(device, SIGTERM);
    return start_again(device);
  }

  double restart_all() {
    train_a_while();
    for (int i = 0; i < devices; ++i) machines_.group->device(i).send_signal(SIGTERM);
    for (int i = 0; i < devices; ++i) REQUIRE(machines_.group->device(i).wait(20s));
    for (int i = 0; i + 1 < devices; ++i) machines_.group->start(i);
    return start_again(devices - 1);
  }

  double cut_one() {
    train_a_while();
    const int device = drawn_device();
    machines_.set_connected(device, false);
    std::this_thread::sleep_for(std::chrono::milliseconds(6000 + rng_.below(8000)));
    machines_.set_connected(device, true);
    return next_round(device == 0 ? 1 : 0, RealClock().now());
  }

  double end_one(int moment) {
    train_a_while();
    const int device = drawn_device();
    const int other = (device + 1) % devices;
    if (moment == 1) machines_.set_connected(device, false);
    if (moment == 2) machines_.group->device(other).send_signal(SIGSTOP);
    if (moment == 3) end(other, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(rng_.below(moment == 0 ? 1000 : 8000)));
    const TimePoint asked = RealClock().now();
    end(device, SIGTERM);
    const double took = seconds_since(asked);
    if (moment == 1) machines_.set_connected(device, true);
    if (moment == 2) machines_.group->device(other).send_signal(SIGCONT);
    if (moment == 3) machines_.group->start(other);
    machines_.group->start(device);
    return took;
  }

  Rng rng_;
  Machines machines_;
  Times times_;
};

}  // namespace

int main(int argc, char** argv) {
  const OutsideTests outside_tests;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  Recovery recovery(seed);
  recovery.run(rounds);
  recovery.report();
  return 0;
}
