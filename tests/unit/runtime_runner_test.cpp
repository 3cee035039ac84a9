#include <doctest/doctest.h>
#include <pthread.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "runtime/process/runner.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace std::chrono_literals;

namespace {

struct TestAgent final : Agent {
  std::string label = "test";
  std::function<Turn()> body;
  [[nodiscard]] std::string_view name() const noexcept override { return label; }
  Turn step() override { return body(); }
};

/// Runs `agent` to its end on a runner and returns the seconds it took.
double run_to_end(ThreadRunner& runner, Agent& agent) {
  const RealClock clock;
  const TimePoint begin = clock.now();
  runner.start(agent, clock);
  runner.join();
  return to_seconds(clock.now() - begin);
}

}  // namespace

TEST_CASE("ThreadRunner: steps until the agent says finished, on a thread with the agent's name") {
  TestAgent agent;
  agent.label = "a-name-longer-than-fifteen";
  int steps = 0;
  std::string thread_name;
  agent.body = [&] {
    char name[32] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    thread_name = name;
    return Turn{.work = 1, .finished = ++steps == 10};
  };
  ThreadRunner runner;
  CHECK(runner.tid() == 0);
  CHECK(runner.beat_ns() == 0);
  run_to_end(runner, agent);
  CHECK(steps == 10);
  CHECK(thread_name == "a-name-longer-t");
  CHECK(runner.finished());
  CHECK(runner.tid() > 0);
}

TEST_CASE("ThreadRunner: the beat is the time of the last step, and nothing after the end") {
  const RealClock clock;
  TestAgent agent;
  std::atomic<int> gate{0};  // 0: first step, 1: the test has checked, finish
  agent.body = [&] {
    gate.wait(0);
    return Turn{.work = 1, .finished = true};
  };
  const std::int64_t before = clock.now().time_since_epoch().count();
  ThreadRunner runner;
  runner.start(agent, clock);
  const std::int64_t beat = runner.beat_ns();
  CHECK(beat >= before);
  CHECK(beat <= clock.now().time_since_epoch().count());
  gate = 1;
  gate.notify_all();
  runner.join();
  CHECK(runner.beat_ns() == 0);
}

TEST_CASE("ThreadRunner: an agent with work is asked again at once, one without is left alone for a while") {
  TestAgent busy;
  int steps = 0;
  busy.body = [&] { return Turn{.work = 1, .finished = ++steps == 20000}; };
  ThreadRunner first;
  CHECK(run_to_end(first, busy) < 1.0);  // with the shortest pause it would take 20 s

  TestAgent lazy;
  steps = 0;
  lazy.body = [&] { return Turn{.finished = ++steps == 4}; };
  ThreadRunner second;
  const double seconds = run_to_end(second, lazy);
  CHECK(seconds >= 0.007);  // 1 + 2 + 4 ms
  CHECK(seconds < testing::deadline_slack * 1.0);
}

TEST_CASE("ThreadRunner: wakes at the time the agent asked for, not before and not much later") {
  const RealClock clock;
  TestAgent agent;
  TimePoint asked{};
  TimePoint woken{};
  agent.body = [&] {
    if (asked == TimePoint{}) {
      asked = clock.now() + 500us;
      return Turn{.wake_at = asked};
    }
    woken = clock.now();
    return Turn{.finished = true};
  };
  ThreadRunner runner;
  run_to_end(runner, agent);
  CHECK(woken >= asked);
  CHECK(woken < asked + 500ms);
}

TEST_CASE("ThreadRunner: an agent that asks for the past and does nothing does not spin") {
  const RealClock clock;
  TestAgent agent;
  int steps = 0;
  const TimePoint begin = clock.now();
  agent.body = [&] {
    ++steps;
    return Turn{.wake_at = TimePoint{}, .finished = clock.now() > begin + 30ms};
  };
  ThreadRunner runner;
  run_to_end(runner, agent);
  CHECK(steps < 1000);
}

TEST_CASE("ThreadRunner: notify() wakes a sleeper long before its back-off is over") {
  const RealClock clock;
  constexpr int rounds = 2000;  // with the back-off alone they would take 2 s to 40 s
  std::atomic<int> asked{0};
  std::atomic<int> answered{0};
  TestAgent agent;
  agent.body = [&] {
    const int next = asked.load(std::memory_order_acquire);
    if (answered.load(std::memory_order_relaxed) == next) return Turn{.finished = next == rounds};
    answered.store(next, std::memory_order_release);
    answered.notify_all();
    return Turn{};  // no work reported: only notify() makes the next answer fast
  };
  ThreadRunner runner;
  runner.start(agent, clock);
  const TimePoint begin = clock.now();
  for (int i = 1; i <= rounds; ++i) {
    asked.store(i, std::memory_order_release);
    runner.notify();
    answered.wait(i - 1);
  }
  CHECK(to_seconds(clock.now() - begin) < testing::deadline_slack * 1.5);
  runner.join();
}

TEST_CASE("ThreadRunner: a notify() during a step is not lost: the next step follows at once") {
  TestAgent agent;
  ThreadRunner runner;
  int steps = 0;
  agent.body = [&] {
    runner.notify();  // as if a record arrived directly after the agent's check
    return Turn{.finished = ++steps == 500};
  };
  CHECK(run_to_end(runner, agent) < 1.0);  // each lost one would cost up to 20 ms
}

TEST_CASE("ThreadRunner: no wake-up is lost under a storm of notifiers, and what they wrote is seen") {
  const RealClock clock;
  constexpr int threads = 4;
  constexpr int calls = 5000;
  std::atomic<std::int64_t> posted{0};
  std::int64_t plain[threads] =
      {};  // written before notify(), read by the agent at the end: the edge must exist
  std::atomic<int> running{threads};
  std::int64_t seen = 0;
  TestAgent agent;
  agent.body = [&] {
    const bool last = running.load(std::memory_order_acquire) == 0;
    const std::int64_t now = posted.load(std::memory_order_relaxed);
    const bool fresh = now != seen;
    seen = now;
    return Turn{.work = fresh ? 1 : 0, .finished = last};
  };
  ThreadRunner runner;
  runner.start(agent, clock);
  std::vector<std::thread> notifiers;
  for (int t = 0; t < threads; ++t) {
    notifiers.emplace_back([&, t] {
      for (int i = 0; i < calls; ++i) {
        plain[t] += 1;
        posted.fetch_add(1, std::memory_order_relaxed);
        if (i + 1 == calls) running.fetch_sub(1, std::memory_order_acq_rel);
        runner.notify();
      }
    });
  }
  for (auto& notifier : notifiers) notifier.join();
  runner.join();
  CHECK(seen == threads * calls);
  CHECK(plain[0] == calls);
}
