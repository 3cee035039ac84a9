#pragma once
#include <mutex>
#include <utility>

namespace rivulet {

/// A value that one thread publishes and others copy, without making the writer wait. While a reader copies,
/// the new value stays pending until the next post() or publish().
template <class T>
class Posted {
 public:
  // --- writer ---
  void post(T value) {
    mine_ = std::move(value);
    pending_ = true;
    publish();
  }
  /// Publishes the pending value. Returns false if a reader is copying the value at this moment.
  bool publish() {
    if (!pending_) return true;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return false;
    std::swap(shown_, mine_);
    pending_ = false;
    return true;
  }

  // --- any thread ---
  [[nodiscard]] T read() const {
    const std::lock_guard lock(mutex_);
    return shown_;
  }

 private:
  mutable std::mutex mutex_;
  T shown_{};  ///< shared, under mutex_
  // writer
  T mine_{};
  bool pending_ = false;
};

}  // namespace rivulet
