#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/row.h"
#include "core/time.h"
#include "devices/trainer.h"
#include "sync/message/plan.h"

namespace rivulet::runtime {

/// Local steps since the last synchronization, and what the device announces about them. Owner: train thread.
class LocalSteps {
 public:
  /// Call when the group has synchronized: the steps are part of its state or discarded.
  void begin(TimePoint now) {
    const double known = compute_seconds();
    *this = {};
    known_compute_seconds_ = known;
    restart(now);
  }
  /// Starts the steps that follow `before`, whose steps are being synchronized.
  void follow(const LocalSteps& before, TimePoint now) {
    known_compute_seconds_ = before.compute_seconds();
    restart(now);
  }
  /// Call when a round ended without aggregating, or when a new view begins: the steps are still to be
  /// announced.
  void restart(TimePoint now) noexcept {
    turns_ = 0;
    began_ = last_ended_ = now;
  }

  /// True if the scheduled synchronization is due.
  [[nodiscard]] bool complete(const sync::policy::Schedule& schedule, TimePoint now) const noexcept;
  /// True if no further step can be announced, so the group should synchronize now. `partitions`: number of
  /// partitions that the device reads.
  [[nodiscard]] bool full(std::size_t partitions) const noexcept;
  /// Returns the time of the next scheduled synchronization or step, whichever comes first.
  [[nodiscard]] TimePoint next_at(const sync::policy::Schedule& schedule) const noexcept;
  /// True if the next step is due: enough `rows` wait, or the last step was too long ago.
  [[nodiscard]] bool is_due(std::size_t rows, std::size_t wanted, Duration wait,
                            TimePoint now) const noexcept {
    return rows >= wanted || now >= last_ended_ + wait;
  }

  /// Call when a turn made no step, because there were no rows or their gradient was not finite.
  void pass(TimePoint now) noexcept {
    ++turns_;
    last_ended_ = now;
  }
  /// Adds a step that used these rows, all of them from this device.
  void add(const devices::StepReport& report, std::span<const RowTag> rows, double compute_seconds,
           TimePoint now);

  /// Call when the synchronization under way has ended. Counts the steps made so far as steps ahead.
  void agreed() noexcept { ahead_ = steps(); }

  [[nodiscard]] std::uint32_t steps() const noexcept { return static_cast<std::uint32_t>(made_.size()); }
  /// Returns the number of steps made during the last synchronization; they come first.
  [[nodiscard]] std::uint32_t ahead() const noexcept { return ahead_; }
  /// Returns the time from the start of the first turn to the end of the last one.
  [[nodiscard]] Duration stepping() const noexcept { return last_ended_ - began_; }
  [[nodiscard]] std::uint32_t rows() const noexcept { return rows_; }
  /// Returns the size in bytes of the records that contain these rows.
  [[nodiscard]] std::uint64_t record_bytes() const noexcept { return record_bytes_; }
  [[nodiscard]] double loss_sum() const noexcept { return loss_sum_; }
  /// Return the loss per row in the first and in the second half of the steps; equal for one step.
  [[nodiscard]] double early_loss() const noexcept { return mean_loss(0, (made_.size() + 1) / 2).loss; }
  [[nodiscard]] double late_loss() const noexcept { return mean_loss(made_.size() / 2, made_.size()).loss; }
  [[nodiscard]] std::uint64_t late_rows() const noexcept {
    return mean_loss(made_.size() / 2, made_.size()).rows;
  }
  [[nodiscard]] std::uint64_t correct() const noexcept { return correct_; }
  [[nodiscard]] double gradient_norm2() const noexcept;   ///< mean over the steps
  [[nodiscard]] double compute_seconds() const noexcept;  ///< mean over the steps; if none, over earlier ones
  [[nodiscard]] double computing() const noexcept { return compute_seconds_; }  ///< sum over the steps
  /// Returns, for each interval that trained rows, its rows in each step; see FactsSection::step_rows.
  [[nodiscard]] std::vector<std::uint32_t> rows_of(std::span<const RowInterval> intervals) const;

 private:
  struct Part {
    PartitionId partition;
    std::uint32_t rows = 0;
  };
  struct Loss {
    double loss = 0;
    std::uint64_t rows = 0;
  };
  [[nodiscard]] Loss mean_loss(std::size_t from, std::size_t to) const noexcept;
  TimePoint began_{};
  TimePoint last_ended_{};
  std::uint32_t turns_ = 0;
  std::vector<std::vector<Part>> made_;  ///< parts of each step
  std::vector<Loss> losses_;             ///< summed loss of each step
  std::uint32_t ahead_ = 0;
  std::uint32_t rows_ = 0;
  std::uint64_t record_bytes_ = 0;
  double loss_sum_ = 0;
  std::uint64_t correct_ = 0;
  double gradient_norm2_ = 0;   ///< sum
  double compute_seconds_ = 0;  ///< sum
  double known_compute_seconds_ = 0;
};

}  // namespace rivulet::runtime
