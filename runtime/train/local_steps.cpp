#include "runtime/train/local_steps.h"

#include <algorithm>

namespace rivulet::runtime {

bool LocalSteps::complete(const sync::policy::Schedule& schedule, TimePoint now) const noexcept {
  const Duration longest = schedule.local ? schedule.local->time : Duration(0);
  const bool time_is_up = longest > Duration(0) && now >= began_ + longest;
  return turns_ >= schedule.steps() || time_is_up;
}

bool LocalSteps::full(std::size_t partitions) const noexcept {
  return (made_.size() + 1) * std::max<std::size_t>(1, partitions) > sync::facts_step_rows_max;
}

TimePoint LocalSteps::next_at(const sync::policy::Schedule& schedule) const noexcept {
  const TimePoint step = last_ended_ + schedule.wait;
  const Duration longest = schedule.local ? schedule.local->time : Duration(0);
  return longest > Duration(0) ? std::min(step, began_ + longest) : step;
}

void LocalSteps::add(const devices::StepReport& report, std::span<const RowTag> rows, double compute_seconds,
                     TimePoint now) {
  std::vector<Part>& parts = made_.emplace_back();
  for (const RowTag& row : rows) {
    record_bytes_ += row.record_bytes;
    const auto part = std::ranges::find(parts, row.position.partition, &Part::partition);
    if (part != parts.end())
      ++part->rows;
    else
      parts.push_back({row.position.partition, 1});
  }
  losses_.push_back({report.loss_sum, rows.size()});
  rows_ += static_cast<std::uint32_t>(rows.size());
  loss_sum_ += report.loss_sum;
  correct_ += report.correct;
  gradient_norm2_ += report.gradient_norm2;
  compute_seconds_ += compute_seconds;
  pass(now);
}

LocalSteps::Loss LocalSteps::mean_loss(std::size_t from, std::size_t to) const noexcept {
  Loss all;
  for (std::size_t i = from; i < to; ++i) {
    all.loss += losses_[i].loss;
    all.rows += losses_[i].rows;
  }
  if (all.rows > 0) all.loss /= static_cast<double>(all.rows);
  return all;
}

double LocalSteps::gradient_norm2() const noexcept {
  return made_.empty() ? 0 : gradient_norm2_ / steps();
}

double LocalSteps::compute_seconds() const noexcept {
  return made_.empty() ? known_compute_seconds_ : compute_seconds_ / steps();
}

std::vector<std::uint32_t> LocalSteps::rows_of(std::span<const RowInterval> intervals) const {
  std::vector<std::uint32_t> all;
  for (const auto& parts : made_)
    for (const RowInterval& interval : intervals) {
      if (interval.rows_trained == 0) continue;
      const auto part = std::ranges::find(parts, interval.partition, &Part::partition);
      all.push_back(part == parts.end() ? 0 : part->rows);
    }
  return all;
}

}  // namespace rivulet::runtime
