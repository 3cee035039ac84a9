#include "runtime/train/run_clock.h"

namespace rivulet::runtime {

/// Without the group's starting point (a group of one, for example), limits count from this process's entry.
void RunClock::enter_view(TimePoint now, const sync::ViewSpec& spec, const AgreedState& state, Logger& log) {
  if (!entered()) {
    since_ = now;
    entry_ = {state.stamp.step, state.rows};
  }
  counts_from_ = spec.counts_from.value_or(entry_);
  if (limit_.rows + limit_.rounds == 0 || counts_from_.step == state.stamp.step) return;
  log.write(Level::info, "--stop-after counts from the start of this run of the group",
            {{"rounds_so_far", std::to_string(state.stamp.step - counts_from_.step)},
             {"rows_so_far", std::to_string(state.rows - counts_from_.rows)}});
}

void RunClock::add_stop_conditions(sync::Facts& facts, TimePoint now, std::size_t rows) const {
  facts.stop_at_step = limit_.rounds > 0 ? counts_from_.step + limit_.rounds : 0;
  facts.stop_at_rows = limit_.rows > 0 ? counts_from_.rows + limit_.rows : 0;
  if (time_is_up(now) || dry_run_is_over(rows)) facts.flags |= sync::flag_stop;
}

/// A dry run applies nothing, so the plan never detects that its limits are reached. Includes the rows of
/// this round.
bool RunClock::dry_run_is_over(std::size_t rows) const {
  if (!dry_run_ || rows == 0) return false;
  return (limit_.rows > 0 && dry_run_rows_ + rows >= limit_.rows) ||
         (limit_.rounds > 0 && dry_run_rounds_ + 1 >= limit_.rounds);
}

}  // namespace rivulet::runtime
