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

/// How often a value that is shared is made again and compared: once in `every` uses, counted over all that
/// share this object. A prime, so that no use is always left out.
class ShareCheck {
 public:
  explicit ShareCheck(std::uint32_t every = 16'381) : every_(every) {}
  [[nodiscard]] bool due() noexcept { return uses_.fetch_add(1, std::memory_order_relaxed) % every_ == 0; }

 private:
  const std::uint32_t every_;
  std::atomic<std::uint64_t> uses_{1};
};

/// What many would make alike of something they all hold, made by the first that asks. It hangs on the thing
/// it is made of and goes with it. Who calls alike what is not is found out by its ShareCheck. Thread-safe; a
/// value is made under the lock.
class SharedWork {
 public:
  /// Null: nothing is made again.
  explicit SharedWork(std::shared_ptr<ShareCheck> check = nullptr) : check_(std::move(check)) {}
  SharedWork(const SharedWork&) = delete;
  SharedWork& operator=(const SharedWork&) = delete;

  /// The T that `make()` makes (a shared_ptr, or null) of what this hangs on and of `input`, which is
  /// identified by its address and kept alive. T needs ==.
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
  /// There are others that it is made for.
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
    RIVULET_CHECK(equal, "what is shared differs from what one device makes of it");
  }

  const std::shared_ptr<ShareCheck> check_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace rivulet
