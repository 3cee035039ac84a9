#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "core/clock.h"
#include "tests/support/kill_harness.h"

namespace rivulet::testing {

/// Observes the steps of some devices of a KillGroup from its construction on: the longest time in which one
/// of them made no step.
class StepWatch {
 public:
  StepWatch(KillGroup& group, const std::vector<int>& devices);
  void look();
  /// Looks every millisecond until `done`; fails the test after `deadline`.
  void until(const std::function<bool()>& done, Duration deadline);
  /// Until each has made `steps` more. Two are needed after a loss: the view that ends can make one at most.
  void until_stepped(std::uint64_t steps, Duration deadline);
  [[nodiscard]] Duration longest() const { return longest_; }

 private:
  struct Seen {
    int device;
    std::uint64_t applied;
    TimePoint since;
  };
  KillGroup& group_;
  RealClock clock_;
  std::vector<Seen> seen_;
  Duration longest_{};
};

/// Reports the gaps as figures: how many, p50, p95, maximum.
void report_gaps(const std::string& of, const std::vector<Duration>& gaps);

}  // namespace rivulet::testing
