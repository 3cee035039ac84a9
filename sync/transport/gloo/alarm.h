#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "core/clock.h"

namespace rivulet::sync::gloo_door {

/// What wakes comm before its tick: a connection that broke, a message that nobody waits for, the owner who
/// wants it to end. comm waits, any thread rings.
class Alarm {
 public:
  explicit Alarm(const Clock& clock) : clock_(clock) {}

  void arrived() { ring(arrived_); }
  void stop() { ring(stop_); }
  /// Of several accounts of how a peer's connection broke the first counts.
  void broke(std::uint32_t peer, const std::string& why) {
    const std::lock_guard lock(mutex_);
    breaks_.emplace(peer, why);
    broke_ = true;
    changed_.notify_one();
  }

  /// Until then at the latest; a break ends it, and what arrives is handed out meanwhile. False: comm is to
  /// end.
  bool wait(TimePoint until, const std::function<void()>& hand_out) {
    std::unique_lock lock(mutex_);
    while (changed_.wait_for(lock, until - clock_.now(), [this] { return stop_ || broke_ || arrived_; })) {
      if (stop_ || broke_) break;
      arrived_ = false;
      lock.unlock();
      hand_out();
      lock.lock();
    }
    broke_ = false;
    return !stop_;
  }
  /// The connections that broke since the last call, and how.
  [[nodiscard]] std::map<std::uint32_t, std::string> take_breaks() {
    const std::lock_guard lock(mutex_);
    return std::exchange(breaks_, {});
  }

 private:
  void ring(bool& what) {
    const std::lock_guard lock(mutex_);
    what = true;
    changed_.notify_one();
  }

  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool broke_ = false;
  bool arrived_ = false;
  bool stop_ = false;
  std::map<std::uint32_t, std::string> breaks_;
};

}  // namespace rivulet::sync::gloo_door
