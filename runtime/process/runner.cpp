#include "runtime/process/runner.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <thread>

#include "core/check.h"

namespace rivulet::runtime {
namespace {

// Values of the futex word shared by notifiers and the thread.
constexpr std::uint32_t quiet = 0;     // running, no notification
constexpr std::uint32_t notified = 1;  // notified since the last step began
constexpr std::uint32_t sleeping = 2;  // sleeping in the kernel; needs a wake-up

constexpr Duration back_off_first = std::chrono::milliseconds(1);
constexpr Duration back_off_last = std::chrono::milliseconds(20);
// Minimum sleep: an agent that returns a past time without work must not burn a core.
constexpr Duration wait_shortest = std::chrono::microseconds(50);

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) noexcept {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

void name_this_thread(std::string_view name) {
  const std::string text(name.substr(0, 15));  // kernel limit
  pthread_setname_np(pthread_self(), text.c_str());
}

}  // namespace

struct ThreadRunner::State {
  // owner
  std::thread thread;
  // runner's thread
  Duration back_off = back_off_first;
  // shared
  std::atomic<std::uint32_t> word{quiet};
  std::atomic<bool> finished{false};
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> beat_ns{0};
  std::atomic<int> tid{0};

  void run(Agent& agent, const Clock& clock);
  void wait(TimePoint now, TimePoint wake_at) noexcept;
};

void ThreadRunner::State::run(Agent& agent, const Clock& clock) {
  name_this_thread(agent.name());
  beat_ns.store(clock.now().time_since_epoch().count(), std::memory_order_relaxed);
  tid.store(static_cast<int>(syscall(SYS_gettid)));
  tid.notify_all();
  while (!stop.load(std::memory_order_acquire)) {
    beat_ns.store(clock.now().time_since_epoch().count(), std::memory_order_relaxed);
    const Turn turn = agent.step();
    if (turn.finished) break;
    if (turn.work > 0) {
      back_off = back_off_first;
    } else {
      wait(clock.now(), turn.wake_at);
    }
  }
  beat_ns.store(0, std::memory_order_relaxed);  // ends the watchdog's supervision
  finished.store(true, std::memory_order_release);
}

// A notify() after the agent's step changes the word. Either the exchange below or the kernel's comparison
// sees it, so no wake-up is lost.
void ThreadRunner::State::wait(TimePoint now, TimePoint wake_at) noexcept {
  const Duration left = wake_at - std::min(now, wake_at);
  const Duration pause = std::clamp(left, wait_shortest, back_off);
  std::uint32_t expected = quiet;
  if (word.compare_exchange_strong(expected, sleeping, std::memory_order_acq_rel)) {
    const timespec timeout{pause.count() / 1'000'000'000, pause.count() % 1'000'000'000};
    futex(word, FUTEX_WAIT_PRIVATE, sleeping, &timeout);
  }
  const bool called = word.exchange(quiet, std::memory_order_acq_rel) == notified;
  back_off = called ? back_off_first : std::min(2 * back_off, back_off_last);
}

ThreadRunner::ThreadRunner() : state_(std::make_unique<State>()) {}

ThreadRunner::~ThreadRunner() {
  if (!state_->thread.joinable()) return;
  RIVULET_CHECK(finished(), "a runner must not be destroyed while its agent runs");
  state_->thread.join();
}

void ThreadRunner::start(Agent& agent, const Clock& clock) {
  RIVULET_CHECK(tid() == 0, "a runner must not be started twice");
  state_->thread = std::thread([state = state_.get(), &agent, &clock] { state->run(agent, clock); });
  state_->tid.wait(0);
}

// The exchange must be unconditional: it publishes the caller's earlier writes even if the word is already
// `notified`.
void ThreadRunner::notify() noexcept {
  if (state_->word.exchange(notified, std::memory_order_acq_rel) != sleeping) return;
  futex(state_->word, FUTEX_WAKE_PRIVATE, 1, nullptr);
}

bool ThreadRunner::finished() const noexcept {
  return state_->finished.load(std::memory_order_acquire);
}

void ThreadRunner::stop() noexcept {
  state_->stop.store(true, std::memory_order_release);
  notify();
}

void ThreadRunner::join() {
  if (state_->thread.joinable()) state_->thread.join();
}

std::int64_t ThreadRunner::beat_ns() const noexcept {
  return state_->beat_ns.load(std::memory_order_relaxed);
}

int ThreadRunner::tid() const noexcept {
  return state_->tid.load();
}

}  // namespace rivulet::runtime
