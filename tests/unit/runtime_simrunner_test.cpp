#include <doctest/doctest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/rng.h"
#include "runtime/wiring/sim_runner.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace std::chrono_literals;

namespace {

struct ScriptedAgent final : Agent {
  ScriptedAgent(SimRunner& runner, std::function<Turn(ScriptedAgent&)> body_in)
      : wake(runner.make_wake()), body(std::move(body_in)) {
    runner.add(*this, clock, wake);
  }
  [[nodiscard]] std::string_view name() const noexcept override { return "scripted"; }
  Turn step() override {
    ++steps;
    seen.push_back(clock.now());
    return body(*this);
  }
  VirtualClock clock;
  Wake& wake;
  std::function<Turn(ScriptedAgent&)> body;
  int steps = 0;
  std::vector<TimePoint> seen;
};

const auto never = [] { return false; };
TimePoint at(Duration d) {
  return TimePoint(d);
}

/// Twenty agents that work, sleep and notify each other at random; returns the sequence of steps.
std::vector<std::pair<int, Duration>> random_play(std::uint64_t seed) {
  SimRunner runner;
  std::vector<std::pair<int, Duration>> order;
  std::deque<ScriptedAgent> agents;
  Rng rng(seed);
  for (int i = 0; i < 20; ++i) {
    agents.emplace_back(runner, [&, i](ScriptedAgent& self) {
      order.emplace_back(i, self.clock.now().time_since_epoch());
      const auto dice = rng.below(4);
      if (dice == 0) self.clock.advance_by(Duration(rng.below(1000)));
      if (dice == 1) agents[rng.below(20)].wake.notify();
      if (dice == 2) agents[rng.below(20)].wake.notify_at(self.clock.now() + Duration(rng.below(5000)));
      return Turn{.work = static_cast<int>(dice % 2),
                  .wake_at = self.clock.now() + Duration(rng.below(3000))};
    });
  }
  runner.run_until([&] { return order.size() >= 5000; });
  return order;
}

}  // namespace

TEST_CASE("SimRunner: agents are asked at exactly the time they named") {
  SimRunner runner;
  ScriptedAgent agent(runner, [](ScriptedAgent& self) {
    return Turn{.wake_at = self.clock.now() + 100ms, .finished = self.steps == 4};
  });
  CHECK(runner.run_until(never) == 4);
  CHECK(agent.seen == std::vector{at(0ms), at(100ms), at(200ms), at(300ms)});
  CHECK(runner.now() == at(300ms));
}

TEST_CASE("SimRunner: ties are broken by who asked first") {
  SimRunner runner;
  std::string order;
  const auto letter = [&](char c) {
    return [&order, c](ScriptedAgent& self) {
      order += c;
      return Turn{.wake_at = self.clock.now() + 1ms, .finished = self.steps == 3};
    };
  };
  ScriptedAgent a(runner, letter('a'));
  ScriptedAgent b(runner, letter('b'));
  ScriptedAgent c(runner, letter('c'));
  runner.run_until(never);
  CHECK(order == "abcabcabc");
}

TEST_CASE("SimRunner: an agent that worked is asked again at its own clock's new time") {
  SimRunner runner;
  ScriptedAgent computes(runner, [](ScriptedAgent& self) {
    self.clock.advance_by(7ms);
    return Turn{.work = 1, .finished = self.steps == 3};
  });
  std::vector<TimePoint> other;
  ScriptedAgent watches(runner, [&](ScriptedAgent& self) {
    other.push_back(self.clock.now());
    return Turn{.wake_at = self.clock.now() + 5ms, .finished = self.steps == 3};
  });
  runner.run_until(never);
  CHECK(computes.seen == std::vector{at(0ms), at(7ms), at(14ms)});
  CHECK(other == std::vector{at(0ms), at(5ms), at(10ms)});
}

TEST_CASE("SimRunner: an event waits for an agent that is still computing") {
  SimRunner runner;
  ScriptedAgent busy(runner, [](ScriptedAgent& self) {
    if (self.steps == 1) self.clock.advance_by(50ms);
    return Turn{};
  });
  ScriptedAgent caller(runner, [&](ScriptedAgent&) {
    busy.wake.notify_at(at(10ms));
    busy.wake.notify_at(at(20ms));
    return Turn{};
  });
  runner.run_until(never);
  CHECK(busy.seen == std::vector{at(0ms), at(50ms)});
  CHECK(runner.now() == at(50ms));
}

TEST_CASE("SimRunner: what is said at the end of a computation is said then") {
  SimRunner runner;
  ScriptedAgent listener(runner, [](ScriptedAgent&) { return Turn{}; });
  ScriptedAgent speaker(runner, [&](ScriptedAgent& self) {
    self.clock.advance_by(30ms);
    listener.wake.notify();
    return Turn{};
  });
  runner.run_until(never);
  CHECK(listener.seen == std::vector{at(0ms), at(30ms)});
}

TEST_CASE("SimRunner: agents with nothing to do sleep for ever, and the run ends") {
  SimRunner runner;
  ScriptedAgent idle(runner, [](ScriptedAgent&) { return Turn{}; });
  CHECK(runner.run_until(never) == 1);
  CHECK(runner.run_until(never) == 0);
  idle.wake.notify();
  CHECK(runner.run_until(never) == 1);
}

TEST_CASE("SimRunner: a newer answer replaces an older one, a notification stays") {
  SimRunner runner;
  ScriptedAgent agent(runner, [](ScriptedAgent& self) {
    if (self.steps == 1) return Turn{.wake_at = at(100ms)};
    return Turn{};
  });
  agent.wake.notify_at(at(10ms));
  agent.wake.notify_at(at(20ms));
  agent.wake.notify_at(TimePoint::max());
  runner.run_until(never);
  CHECK(agent.seen == std::vector{at(0ms), at(10ms), at(20ms)});
}

TEST_CASE("SimRunner: many notifications for one instant are one step") {
  SimRunner runner;
  ScriptedAgent agent(runner, [](ScriptedAgent&) { return Turn{}; });
  for (int i = 0; i < 100; ++i) agent.wake.notify_at(at(5ms));
  CHECK(runner.run_until(never) == 2);
}

TEST_CASE("SimRunner: an agent that asks for the past and does nothing does not stop the clock") {
  SimRunner runner;
  ScriptedAgent agent(runner, [](ScriptedAgent& self) {
    return Turn{.wake_at = TimePoint{}, .finished = self.clock.now() >= at(10ms)};
  });
  CHECK(runner.run_until(never) == 11);
}

TEST_CASE("SimRunner: a finished agent is never asked again") {
  SimRunner runner;
  ScriptedAgent agent(runner, [](ScriptedAgent& self) {
    self.wake.notify_at(at(5ms));
    return Turn{.work = 1, .wake_at = at(1ms), .finished = true};
  });
  agent.wake.notify_at(at(3ms));
  CHECK(runner.run_until(never) == 1);
  agent.wake.notify();
  CHECK(runner.run_until(never) == 0);
}

TEST_CASE("SimRunner: stops when told, between two steps, and goes on from there") {
  SimRunner runner;
  ScriptedAgent agent(runner, [](ScriptedAgent& self) { return Turn{.wake_at = self.clock.now() + 1ms}; });
  CHECK(runner.run_until([&] { return agent.steps == 5; }) == 5);
  CHECK(runner.now() == at(4ms));
  CHECK(runner.run_until([&] { return agent.steps == 8; }) == 3);
  CHECK(runner.now() == at(7ms));
}

TEST_CASE("SimRunner: the same seed gives the same order, always; another seed another") {
  const auto first = random_play(1);
  CHECK(first == random_play(1));
  CHECK(first != random_play(2));
  REQUIRE(first.size() == 5000);
}

TEST_CASE(
    "SimRunner: nobody is stepped at a time before its own clock, and the run's clock never goes back") {
  SimRunner runner;
  Rng rng(3);
  TimePoint last{};
  bool monotone = true;
  std::deque<ScriptedAgent> agents;
  for (int i = 0; i < 10; ++i) {
    agents.emplace_back(runner, [&](ScriptedAgent& self) {
      monotone = monotone && self.clock.now() == runner.now() && runner.now() >= last;
      last = runner.now();
      if (rng.below(2) == 0) self.clock.advance_by(Duration(rng.below(100)));
      agents[rng.below(10)].wake.notify();
      return Turn{.wake_at = self.clock.now() + Duration(1 + rng.below(50))};
    });
  }
  runner.run_until([&] { return agents[0].steps > 2000; });
  CHECK(monotone);
}

TEST_CASE("SimRunner: a million steps of trivial agents take about a second, whatever they ask for") {
  SimRunner runner;
  std::deque<ScriptedAgent> agents;
  std::uint64_t steps = 0;
  for (int i = 0; i < 64; ++i) {
    agents.emplace_back(runner, [&, i](ScriptedAgent& self) {
      self.seen.clear();
      ++steps;
      agents[(i + 1) % 64].wake.notify_at(self.clock.now() + 10us);
      return Turn{.wake_at = self.clock.now() + 1s};  // always replaced: stale timers must not accumulate
    });
  }
  const double begin = thread_cpu_seconds();
  runner.run_until([&] { return steps >= 300'000; });
  const double rate = 300'000 / (thread_cpu_seconds() - begin);
  MESSAGE("steps per second: " << rate);
#ifdef NDEBUG
  CHECK(rate > (std::string(RIVULET_SANITIZE).empty() ? 1e6 : 5e4));
#else
  CHECK(rate > 5e4);
#endif
}
