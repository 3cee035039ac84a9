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

/// Wakes comm before its tick: a connection broke, a message arrived that no thread waits for, or the owner
/// closes the transport. comm waits; any thread rings.
class Alarm {
 public:
  explicit Alarm(const Clock& clock) : clock_(clock) {}

  void arrived() { ring(arrived_); }
  void stop() { ring(stop_); }
  /// Keeps the first reason reported for a peer's broken connection.
  void broke(std::uint32_t peer, const std::string& why) {
    const std::lock_guard lock(mutex_);
    breaks_.emplace(peer, why);
    broke_ = true;
    changed_.notify_one();
  }

  /// Waits until `until` or a broken connection, and calls hand_out() for arrivals. Returns false if comm
  /// must stop.
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
  /// Returns the connections that broke since the last call, with reasons.
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
