#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/row.h"
#include "devices/trainer.h"

namespace rivulet::runtime {

/// Judges on this device's own rows whether the model is good or has diverged. Compares its loss with that of
/// a constant guess: the shares of the classes, or the mean of the targets. Judges every thousand rows, over
/// a minimum of eight batches. The model has diverged if it is bad twice in a row without improvement. A
/// single batch of absurd rows has no effect; a non-finite batch counts as such a batch. A model whose steps
/// are all rejected also counts as diverged, though its loss may look good. Owner: the train thread.
class GuessWatch {
 public:
  enum class Targets : std::uint8_t {
    classes,
    normalized,  ///< losses are in variances of the targets
    numbers,
  };
  /// `classes`: number of labels.
  GuessWatch(Targets targets, std::size_t classes);

  /// Counts the result of a batch whose first `own` rows are this device's. `finite`: whether its loss and
  /// gradient are finite.
  void computed(const devices::StepReport& report, const BatchView& batch, std::size_t own, bool finite);
  /// Call when `rows` were dropped because their step, or the local steps that used them, were rejected.
  void refused(std::size_t rows) noexcept;
  /// Call when rows were accepted into a sum. Restarts the count of rejected rows.
  void taken() noexcept { refused_ = {}; }
  /// Call when the model was replaced. Discards all results.
  void begin();
  /// Starts the trial of a checkpoint: good() covers only rows that follow. Other results are kept.
  void begin_trial();

  [[nodiscard]] bool diverged() const noexcept { return diverged_ || refused_.all; }
  /// True if the model has been judged and has not diverged.
  [[nodiscard]] bool sound() const noexcept { return judged_ && !diverged(); }
  [[nodiscard]] bool good() const noexcept { return good_; }

 private:
  struct Guess {
    double knows_shares = 0;   ///< loss per row
    double knows_nothing = 0;  ///< same
  };
  [[nodiscard]] Guess guess() const;
  void count_targets(const BatchView& batch, std::size_t own);
  void judge();

  /// Rows that are judged together.
  struct Block {
    double badness = 0;  ///< sum over rows of loss relative to the deciding loss, capped per batch
    double losses = 0;   ///< sum over rows of loss, not capped
    std::uint64_t rows = 0;
    std::uint64_t batches = 0;

    void add(double loss, double decides, std::uint64_t of_rows);
    [[nodiscard]] bool full() const noexcept;
    /// True if the mean loss exceeds the deciding loss.
    [[nodiscard]] bool exceeds() const noexcept { return badness > static_cast<double>(rows); }
  };

  const Targets targets_;
  const std::size_t label_count_;
  std::vector<double> labels_;                 ///< rows of each class, decaying
  double values_ = 0, sum_ = 0, squares_ = 0;  ///< count and sums of numeric targets, decaying
  Block bad_;                                  ///< since the last evaluation, relative to the bad loss
  Block trial_;                                ///< since the last result of good(), relative to the good loss
  /// Consecutive rejections.
  struct Refused {
    std::uint64_t rows = 0;
    std::uint32_t times = 0;
    bool all = false;  ///< true if the next rows will probably be rejected, too
  };
  Refused refused_;
  bool bad_before_ = false;
  double loss_before_ = 0;
  bool diverged_ = false;
  bool good_ = false;
  bool judged_ = false;
};

}  // namespace rivulet::runtime
