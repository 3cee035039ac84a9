#include "tests/support/step_watch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

#include "tests/support/effort.h"
#include "tests/support/wait.h"

namespace rivulet::testing {

StepWatch::StepWatch(KillGroup& group, const std::vector<int>& devices) : group_(group) {
  for (const int device : devices) seen_.push_back({device, group.page(device).applied, clock_.now()});
}

void StepWatch::look() {
  const TimePoint now = clock_.now();
  for (Seen& seen : seen_) {
    const std::uint64_t applied = group_.page(seen.device).applied;
    if (applied == seen.applied) continue;
    longest_ = std::max(longest_, now - seen.since);
    seen.applied = applied;
    seen.since = now;
  }
}

void StepWatch::until(const std::function<bool()>& done, Duration deadline) {
  const TimePoint end = clock_.now() + deadline_slack * deadline;
  bool came = false;
  while (!(came = done()) && clock_.now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    look();
  }
  INFO(group_.story());
  REQUIRE(came);
}

void StepWatch::until_stepped(std::uint64_t steps, Duration deadline) {
  std::vector<std::uint64_t> wanted;
  for (const Seen& seen : seen_) wanted.push_back(seen.applied + steps);
  until(
      [&] {
        for (std::size_t i = 0; i < seen_.size(); ++i)
          if (seen_[i].applied < wanted[i]) return false;
        return true;
      },
      deadline);
}

void report_gaps(const std::string& of, const std::vector<Duration>& gaps) {
  report_figure((of + ": changes").c_str(), static_cast<double>(gaps.size()), "changes");
  for (const auto& [name, share] : {std::pair{"p50", 0.5}, {"p95", 0.95}, {"max", 1.0}})
    report_figure((of + ": gap, " + name).c_str(), to_seconds(percentile(gaps, share)), "s");
}

}  // namespace rivulet::testing
