#pragma once
#include <optional>

#include "core/time.h"
#include "sync/membership/obstacle.h"

namespace rivulet::sync::membership {

/// Private to membership/: an obstacle that ends this device, or all. It is an error only after it lasted, so
/// that a device which is just being replaced does not end another.
class Conflict {
 public:
  /// It is there; `of_all`: it ends all devices, not this one alone. True: it has lasted for `grace`.
  bool lasts(Obstacle why, bool of_all, TimePoint now, Duration grace) {
    if (!since_) since_ = now;
    why_ = std::move(why);
    of_all_ = of_all;
    return now - *since_ >= grace;
  }
  void over() noexcept { since_.reset(); }
  /// It is there and ends all devices.
  [[nodiscard]] bool ends_all() const noexcept { return since_ && of_all_; }
  [[nodiscard]] const Obstacle& why() const noexcept { return why_; }

  /// This device ends by it.
  void end() noexcept { ended_ = true; }
  /// What the others end by, too, after that; none: nothing.
  [[nodiscard]] WhyNot cause_for_all() const noexcept { return ended_ && of_all_ ? why_.why : WhyNot::none; }

 private:
  std::optional<TimePoint> since_;
  Obstacle why_;
  bool of_all_ = false;
  bool ended_ = false;
};

}  // namespace rivulet::sync::membership
