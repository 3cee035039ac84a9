#pragma once
#include <optional>

#include "core/time.h"
#include "sync/membership/admission_error.h"

namespace rivulet::sync::membership {

/// Private to membership/: an obstacle that stops this device or all devices. It becomes an error only after
/// some time, so that a device that is just being replaced does not stop another one.
class Conflict {
 public:
  /// Notes the obstacle. Returns whether it has lasted for `grace`. `of_all`: it stops all devices.
  bool lasts(AdmissionError why, bool of_all, TimePoint now, Duration grace) {
    if (!since_) since_ = now;
    why_ = std::move(why);
    of_all_ = of_all;
    return now - *since_ >= grace;
  }
  void over() noexcept { since_.reset(); }
  /// Whether there is an obstacle that stops all devices.
  [[nodiscard]] bool ends_all() const noexcept { return since_ && of_all_; }
  [[nodiscard]] const AdmissionError& why() const noexcept { return why_; }

  /// Records that this device stops because of the obstacle.
  void end() noexcept { ended_ = true; }
  /// After end(): the cause for which the other devices also stop; none if they continue.
  [[nodiscard]] WhyNot cause_for_all() const noexcept { return ended_ && of_all_ ? why_.why : WhyNot::none; }

 private:
  std::optional<TimePoint> since_;
  AdmissionError why_;
  bool of_all_ = false;
  bool ended_ = false;
};

}  // namespace rivulet::sync::membership
