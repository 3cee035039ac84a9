#pragma once

namespace rivulet::testing {

/// The power of one simulated device. Each effect on the world (a record, a message, a disk call) consumes
/// one unit, so that a crash can occur between any two effects. Owner: the simulation's thread.
class SimPower {
 public:
  /// False: no power; the effect must not happen.
  bool take() noexcept {
    if (left_ == 0) return false;
    if (left_ > 0) --left_;
    return true;
  }
  /// The same for a disk call.
  bool take_on_disk() noexcept {
    if (calls_left_ == 0) left_ = 0;
    if (calls_left_ > 0) --calls_left_;
    return take();
  }
  [[nodiscard]] bool off() const noexcept { return left_ == 0; }
  /// Fails after N more effects.
  void fail_after(int effects) noexcept { left_ = effects; }
  /// Fails after N more disk calls.
  void fail_after_calls(int calls) noexcept { calls_left_ = calls; }
  void restore() noexcept { left_ = calls_left_ = -1; }

 private:
  int left_ = -1;        ///< -1: unlimited
  int calls_left_ = -1;  ///< same
};

}  // namespace rivulet::testing
