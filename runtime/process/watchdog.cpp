#include "runtime/process/watchdog.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "core/check.h"
#include "core/clock.h"
#include "runtime/process/stack_dump.h"

namespace rivulet::runtime {

struct Watchdog::State {
  // constant
  Duration deadline{};
  // owner
  std::thread thread;
  // shared, under mutex
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Watched> watched;
  bool stopping = false;
  // shared
  std::atomic<TimePoint> content_at{TimePoint::min()};  ///< last check without a stalled thread

  [[nodiscard]] Duration interval() const { return deadline / 4; }
  void run();
  std::optional<std::string> stalled(TimePoint now);
};

// Describes the first stalled thread, if any.
std::optional<std::string> Watchdog::State::stalled(TimePoint now) {
  for (const Watched& w : watched) {
    const std::int64_t beat = w.beat_ns();
    if (beat == 0) continue;
    const Duration silent = now.time_since_epoch() - Duration(beat);
    if (silent <= deadline) continue;
    return fmt::format(
        "watchdog: thread '{}' has made no progress for {:.2f} s (deadline {:.2f} s); stacks of all threads:",
        w.name, to_seconds(silent), to_seconds(deadline));
  }
  return std::nullopt;
}

// A late check means that the whole process was stopped or starved. Watched threads then get one more
// interval to step, but never two in a row.
void Watchdog::State::run() {
  pthread_setname_np(pthread_self(), "watchdog");
  const RealClock clock;
  TimePoint last_look = clock.now();
  bool spared = false;
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, interval(), [this] { return stopping; })) {
    const TimePoint now = clock.now();
    const bool late = now - last_look >= 2 * interval();
    last_look = now;
    spared = late && !spared;
    if (!spared)
      if (const auto why = stalled(now)) dump_stacks_and_exit(*why, interval());
    content_at.store(now);
  }
}

Watchdog::Watchdog(Duration deadline) : state_(std::make_unique<State>()) {
  RIVULET_CHECK(deadline > Duration{0}, "the deadline of a watchdog must be above 0");
  state_->deadline = deadline;
}

Watchdog::~Watchdog() {
  stop();
}

void Watchdog::watch(Watched watched) {
  const std::lock_guard lock(state_->mutex);
  state_->watched.push_back(std::move(watched));
}

void Watchdog::start() {
  RIVULET_CHECK(!state_->thread.joinable(), "a running watchdog must not be started again");
  prepare_stack_dump();
  state_->stopping = false;
  state_->content_at.store(RealClock().now());
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

void Watchdog::stop() {
  if (!state_->thread.joinable()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

bool Watchdog::content() const noexcept {
  return RealClock().now() < state_->content_at.load() + 2 * state_->interval();
}

}  // namespace rivulet::runtime
