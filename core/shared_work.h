#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/check.h"

namespace rivulet {

/// How often a shared value is recomputed and compared: once in `every` uses, counted over all users of this
/// object. A prime, so that no periodic use escapes the check.
class ShareCheck {
 public:
  explicit ShareCheck(std::uint32_t every = 16'381) : every_(every) {}
  [[nodiscard]] bool due() noexcept { return uses_.fetch_add(1, std::memory_order_relaxed) % every_ == 0; }

 private:
  const std::uint32_t every_;
  std::atomic<std::uint64_t> uses_{1};
};

/// Results that several devices of a process would compute identically from the same input. The first caller
/// computes a result, which lives as long as the object that this cache is attached to. A ShareCheck detects
/// inputs that should be identical but are not. Thread-safe; values are computed under the lock.
class SharedWork {
 public:
  /// Without a check, values are never recomputed for comparison.
  explicit SharedWork(std::shared_ptr<ShareCheck> check = nullptr) : check_(std::move(check)) {}
  SharedWork(const SharedWork&) = delete;
  SharedWork& operator=(const SharedWork&) = delete;

  /// Returns the cached result of `make()` (a shared_ptr, or null) for `input`; calls `make()` if there is
  /// none. `input` is identified by its address and kept alive. T needs ==.
  template <class T, class Make>
  std::shared_ptr<const T> once(const std::shared_ptr<const void>& input, const Make& make) {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.input != input || *entry.type != typeid(T)) continue;
      auto value = std::static_pointer_cast<const T>(entry.value);
      if (check_ && check_->due()) compare<T>(make(), value);
      return value;
    }
    std::shared_ptr<const T> value = make();
    entries_.push_back({input, &typeid(T), value});
    return value;
  }
  /// Whether several devices share the values.
  [[nodiscard]] bool shared() const noexcept { return check_ != nullptr; }
  [[nodiscard]] const std::shared_ptr<ShareCheck>& check() const noexcept { return check_; }

 private:
  struct Entry {
    std::shared_ptr<const void> input;
    const std::type_info* type = nullptr;
    std::shared_ptr<const void> value;
  };
  template <class T>
  static void compare(const std::shared_ptr<const T>& own, const std::shared_ptr<const T>& shared) {
    const bool equal = own && shared ? *own == *shared : own == shared;
    RIVULET_CHECK(equal, "a shared value differs from its recomputation");
  }

  const std::shared_ptr<ShareCheck> check_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace rivulet
