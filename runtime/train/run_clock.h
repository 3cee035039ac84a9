#pragma once
#include <cstdint>

#include "core/time.h"
#include "runtime/process/log.h"
#include "runtime/process/stop.h"
#include "runtime/state/agreed_state.h"
#include "sync/message/facts.h"
#include "sync/transport/transport.h"

namespace rivulet::runtime {

/// When this process entered its group, and when the group reaches its stop limits. Limits use the group's
/// clock, so that restarts of a process do not extend them. Owner: the train thread.
class RunClock {
 public:
  RunClock(const StopAfter& limit, bool dry_run) : limit_(limit), dry_run_(dry_run) {}

  /// True if this process has been in a view.
  [[nodiscard]] bool entered() const noexcept { return since_ != TimePoint::max(); }
  void enter_view(TimePoint now, const sync::ViewSpec& spec, const AgreedState& state, Logger& log);
  /// Returns the number of rows that the group has trained since this process entered it.
  [[nodiscard]] std::uint64_t rows_since_entry(const AgreedState& state) const noexcept {
    return state.rows > entry_.rows ? state.rows - entry_.rows : 0;  // the group may have rolled back
  }
  [[nodiscard]] double seconds_since_entry(TimePoint now) const { return to_seconds(now - since_); }

  /// Writes the stop conditions into the round's facts: the limits, and flag_stop if the time is up or if
  /// `rows` more rows complete a dry run.
  void add_stop_conditions(sync::Facts& facts, TimePoint now, std::size_t rows) const;
  /// True if the time set by --stop-after is up.
  [[nodiscard]] bool time_is_up(TimePoint now) const {
    return limit_.seconds > 0 && seconds_since_entry(now) >= limit_.seconds;
  }
  /// Call when a dry run has processed `rows` more rows.
  void looked_at(std::size_t rows) {
    dry_run_rows_ += rows;
    dry_run_rounds_ += rows > 0 ? 1 : 0;
  }

 private:
  [[nodiscard]] bool dry_run_is_over(std::size_t rows) const;

  const StopAfter limit_;
  const bool dry_run_;
  TimePoint since_ = TimePoint::max();
  sync::ViewSpec::Clocks entry_;        ///< clocks when this process entered its first view
  sync::ViewSpec::Clocks counts_from_;  ///< clocks when the group began to count; limits start there
  std::uint64_t dry_run_rows_ = 0;      ///< rows of a dry run, whose state counts nothing
  std::uint64_t dry_run_rounds_ = 0;
};

}  // namespace rivulet::runtime
