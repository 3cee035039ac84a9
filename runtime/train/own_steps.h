#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/row.h"
#include "core/time.h"
#include "devices/trainer.h"
#include "sync/message/plan.h"

namespace rivulet::runtime {

/// The steps that a device has made of its own since the group agreed last, and what it will announce of
/// them. Owner: the train thread.
class OwnSteps {
 public:
  /// The group has agreed: everything before is part of that, or will never be part of anything.
  void begin(TimePoint now) {
    const double known = compute_seconds();
    *this = {};
    known_compute_seconds_ = known;
    restart(now);
  }
  /// These are under way to the group: what is made from here on comes behind them.
  void follow(const OwnSteps& before, TimePoint now) {
    known_compute_seconds_ = before.compute_seconds();
    restart(now);
  }
  /// The group has met without agreeing, or another view begins: what was made is still to be announced.
  void restart(TimePoint now) noexcept {
    turns_ = 0;
    began_ = last_ended_ = now;
  }

  /// It is time for the group to agree.
  [[nodiscard]] bool complete(const sync::policy::Schedule& schedule, TimePoint now) const noexcept;
  /// No further step can be announced: the group should agree now.
  /// `partitions`: that the device reads.
  [[nodiscard]] bool full(std::size_t partitions) const noexcept;
  /// When it will be, or when the next step is due, if nothing comes before.
  [[nodiscard]] TimePoint next_at(const sync::policy::Schedule& schedule) const noexcept;
  /// The turn of the next step has come: with `rows` that wait, or because there has been none for too long.
  [[nodiscard]] bool is_due(std::size_t rows, std::size_t wanted, Duration wait,
                            TimePoint now) const noexcept {
    return rows >= wanted || now >= last_ended_ + wait;
  }

  /// A turn has passed in which no step was made: there were no rows, or their gradient was not a number.
  void pass(TimePoint now) noexcept {
    ++turns_;
    last_ended_ = now;
  }
  /// A step was made of these rows, all of them its own.
  void add(const devices::StepReport& report, std::span<const RowTag> rows, double compute_seconds,
           TimePoint now);

  /// The agreement that was under way has ended: what was made until now was made meanwhile.
  void agreed() noexcept { ahead_ = steps(); }

  [[nodiscard]] std::uint32_t steps() const noexcept { return static_cast<std::uint32_t>(made_.size()); }
  /// Of these, the first ones: made while the last agreement was under way.
  [[nodiscard]] std::uint32_t ahead() const noexcept { return ahead_; }
  /// From where the turns began to the end of the last one.
  [[nodiscard]] Duration stepping() const noexcept { return last_ended_ - began_; }
  [[nodiscard]] std::uint32_t rows() const noexcept { return rows_; }
  /// Of the records behind them.
  [[nodiscard]] std::uint64_t record_bytes() const noexcept { return record_bytes_; }
  [[nodiscard]] double loss_sum() const noexcept { return loss_sum_; }
  /// Of a row, in the first half of the steps and in the last one; of one step it is the same.
  [[nodiscard]] double early_loss() const noexcept { return mean_loss(0, (made_.size() + 1) / 2).loss; }
  [[nodiscard]] double late_loss() const noexcept { return mean_loss(made_.size() / 2, made_.size()).loss; }
  [[nodiscard]] std::uint64_t late_rows() const noexcept {
    return mean_loss(made_.size() / 2, made_.size()).rows;
  }
  [[nodiscard]] std::uint64_t correct() const noexcept { return correct_; }
  [[nodiscard]] double gradient_norm2() const noexcept;   ///< mean of the steps
  [[nodiscard]] double compute_seconds() const noexcept;  ///< mean of the steps, or of those before
  [[nodiscard]] double computing() const noexcept { return compute_seconds_; }  ///< all of the steps
  /// Of each interval that trained rows, step by step; FactsSection::step_rows.
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
  std::vector<std::vector<Part>> made_;  ///< of each step
  std::vector<Loss> losses_;             ///< same; sums
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
