#pragma once

namespace rivulet::testing {

/// The power of one simulated device: what it does to the world (a record, a message, a call on its disk)
/// takes some, so that a crash can be put between any two of them. Owner: the thread of the simulation.
class SimPower {
 public:
  /// False: there is none any more, and what was to be done has not happened.
  bool take() noexcept {
    if (left_ == 0) return false;
    if (left_ > 0) --left_;
    return true;
  }
  /// The same, for a call on its disk.
  bool take_on_disk() noexcept {
    if (calls_left_ == 0) left_ = 0;
    if (calls_left_ > 0) --calls_left_;
    return take();
  }
  [[nodiscard]] bool off() const noexcept { return left_ == 0; }
  /// It fails after N more effects.
  void fail_after(int effects) noexcept { left_ = effects; }
  /// It fails after N more calls on its disk.
  void fail_after_calls(int calls) noexcept { calls_left_ = calls; }
  void restore() noexcept { left_ = calls_left_ = -1; }

 private:
  int left_ = -1;        ///< -1: for ever
  int calls_left_ = -1;  ///< same
};

}  // namespace rivulet::testing
