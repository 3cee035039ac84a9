#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "runtime/process/watchdog.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
using namespace std::chrono_literals;

// Not in an anonymous namespace: their names must be in the stacks. They wait in a loop, to prevent a tail
// call that would drop the frame.
[[gnu::noinline]] void stalled_in_training() {
  while (true) pause();
}
[[gnu::noinline]] void busy_reading_records(std::atomic<std::int64_t>& beat, bool on_processor) {
  const RealClock clock;
  while (true) {
    beat = clock.now().time_since_epoch().count();
    if (!on_processor) poll(nullptr, 0, 5);
  }
}
[[gnu::noinline]] void blocked_in_communication() {
  int ends[2];
  if (pipe(ends) != 0) return;
  pollfd wanted{ends[0], POLLIN, 0};  // poll, not read: ThreadSanitizer delays signals while a thread reads
  while (poll(&wanted, 1, -1) != 1) {
  }
}

namespace {

// ThreadSanitizer makes every process with threads wait a second before it ends.
const double exit_pause_s = std::string(RIVULET_SANITIZE) == "thread" ? 1 : 0;

constexpr Duration deadline = 2s;  // long enough that a loaded machine cannot fake a stall or hide an end

struct Outcome {
  int status = 0;
  double seconds = 0;
  std::string errors;
};

/// Runs `body` in a child process with its stderr in a pipe.
class Child {
 public:
  template <class Body>
  explicit Child(Body body) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      alarm(20);  // a watchdog that does not fire must not leave a spinning orphan
      dup2(ends[1], STDERR_FILENO);
      close(ends[0]);
      close(ends[1]);
      body();
      _exit(0);
    }
    close(ends[1]);
    errors_ = ends[0];
  }
  /// Waits for its end; reads its stderr, or lets the pipe fill up.
  Outcome finish(bool drain = true) {
    Outcome out;
    char buffer[4096];
    for (ssize_t n = 0; drain && (n = read(errors_, buffer, sizeof buffer)) > 0;) {
      out.errors.append(buffer, static_cast<std::size_t>(n));
    }
    waitpid(pid_, &out.status, 0);
    out.seconds = to_seconds(RealClock().now() - begin_) - exit_pause_s;
    close(errors_);
    return out;
  }

 private:
  const TimePoint begin_ = RealClock().now();
  pid_t pid_ = -1;
  int errors_ = -1;
};

std::thread named(const char* name, auto body) {
  return std::thread([name, body] {
    pthread_setname_np(pthread_self(), name);
    body();
  });
}

std::int64_t now_ns() {
  return RealClock().now().time_since_epoch().count();
}

}  // namespace

/// Three threads; `which` is stalled from the start, the others show signs of life.
[[gnu::noinline]] void plant_stall(const std::string& which, Duration limit) {
  static std::atomic<std::int64_t> alive{0};
  const std::int64_t start = now_ns();
  std::thread train = named("train", [] { stalled_in_training(); });
  std::thread ingest = named("ingest", [&which] { busy_reading_records(alive, which == "comm"); });
  std::thread comm = named("comm", [] { blocked_in_communication(); });
  Watchdog watchdog(limit);
  for (const char* name : {"train", "ingest", "comm"}) {
    const bool stalls = name == which;
    watchdog.watch({name, [stalls, start] { return stalls ? start : alive.load(); }});
  }
  watchdog.start();
  train.join();
}

TEST_CASE("Watchdog: a stalled thread ends the process with 70 and the stacks of all threads") {
  const std::string names[] = {"train", "ingest", "comm"};
  std::vector<Child> children;
  children.reserve(std::size(names));
  for (const std::string& which : names) children.emplace_back([&] { plant_stall(which, deadline); });
  for (std::size_t i = 0; i < children.size(); ++i) {
    const Outcome out = children[i].finish();
    CAPTURE(names[i]);
    CAPTURE(out.errors);
    CHECK(WIFEXITED(out.status));
    CHECK(WEXITSTATUS(out.status) == 70);
    CHECK(out.seconds >= to_seconds(deadline));
    CHECK(out.seconds < testing::deadline_slack * to_seconds(deadline));
    CHECK(contains(out.errors, "watchdog: thread '" + names[i] + "' has made no progress for "));
    for (const char* thread : {" train\n", " ingest\n", " comm\n", " watchdog\n"})
      CHECK(contains(out.errors, thread));
    CHECK(contains(out.errors, "stalled_in_training"));
    CHECK(contains(out.errors, "busy_reading_records"));
    CHECK(contains(out.errors, "blocked_in_communication"));
    CHECK(contains(out.errors, "plant_stall"));  // the main thread, in join()
  }
}

TEST_CASE("Watchdog: a thread that blocks signals is named and does not keep the process alive") {
  Child child([] {
    std::thread deaf = named("deaf", [] {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_BLOCK, &all, nullptr);
      while (true) pause();
    });
    Watchdog watchdog(deadline);
    watchdog.watch({"deaf", [start = now_ns()] { return start; }});
    watchdog.start();
    deaf.join();
  });
  const Outcome out = child.finish();
  CAPTURE(out.errors);
  CHECK(WEXITSTATUS(out.status) == 70);
  CHECK(out.seconds < testing::deadline_slack * to_seconds(deadline));
  CHECK(contains(out.errors, " deaf\n    (no answer"));
}

TEST_CASE("Watchdog: a full pipe that nobody reads does not keep the process alive") {
  Child child([] {
    fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
    const std::string page(4096, 'x');
    while (write(STDERR_FILENO, page.data(), page.size()) > 0) {
    }
    fcntl(STDERR_FILENO, F_SETFL, 0);
    plant_stall("train", deadline);
  });
  const Outcome out = child.finish(false);
  CHECK(WIFEXITED(out.status));
  CHECK(WEXITSTATUS(out.status) == 70);
  CHECK(out.seconds < testing::deadline_slack * to_seconds(deadline));
}

TEST_CASE(
    "Watchdog: it is content while it looks and finds nobody late, not before and not when it is stuck "
    "itself") {
  std::atomic<bool> stuck{false};
  std::atomic<int> looks{0};
  Watchdog watchdog(400ms);
  watchdog.watch({"steps", [&] {
                    ++looks;
                    looks.notify_all();
                    stuck.wait(true);
                    return now_ns();
                  }});
  Watchdog patient(60s);
  patient.start();
  CHECK(patient.content());  // before its first check
  CHECK_FALSE(watchdog.content());
  watchdog.start();
  while (!watchdog.content()) std::this_thread::yield();
  for (int seen = 0; seen < 5; seen = looks) looks.wait(seen);  // longer than the grace period of the start
  while (!watchdog.content()) std::this_thread::yield();
  stuck = true;
  while (watchdog.content()) std::this_thread::yield();
  stuck = false;
  stuck.notify_all();
  while (!watchdog.content()) std::this_thread::yield();
}

TEST_CASE("Watchdog: threads that step, or have not started, are left alone, and stop() ends it at once") {
  Child child([] {
    Watchdog watchdog(40ms);
    watchdog.watch({"steps", [] { return now_ns(); }});
    watchdog.watch({"later", [] { return std::int64_t{0}; }});
    watchdog.start();
    std::atomic<int> looks{0};
    watchdog.watch({"counts", [&looks] {
                      ++looks;
                      looks.notify_all();
                      return std::int64_t{0};
                    }});
    for (int seen = 0; seen < 8; seen = looks) looks.wait(seen);
    watchdog.stop();
    const int after = looks;
    _exit(after >= 8 ? 0 : 1);
  });
  const Outcome out = child.finish();
  CHECK(WIFEXITED(out.status));
  CHECK(WEXITSTATUS(out.status) == 0);
  CHECK(out.errors.empty());
}
