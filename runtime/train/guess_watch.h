#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/row.h"
#include "devices/trainer.h"

namespace rivulet::runtime {

/// Whether the model is good, or has diverged, by this device's own rows: beside a guess that knows the
/// shares of its classes, or the mean of its targets. Judged on each thousand rows, of eight batches at
/// least: bad ones two times in a row, and it does not get better. One batch of absurd rows decides nothing.
/// A batch that is not finite counts as one of absurd rows. A model that nothing can be trained into, for
/// each step would go too far, is as bad: it may look good, where it stands. Owner: the train thread.
class GuessWatch {
 public:
  enum class Targets : std::uint8_t {
    classes,
    normalized,  ///< losses are in variances of the targets
    numbers,
  };
  /// `classes`: labels that there are.
  GuessWatch(Targets targets, std::size_t classes);

  /// The first `own` rows of a batch are this device's, and this is what the model made of the batch.
  /// `finite`: of its loss and gradient.
  void computed(const devices::StepReport& report, const BatchView& batch, std::size_t own, bool finite);
  /// N rows were used up for nothing: their step, or the own steps made of them, were refused.
  void refused(std::size_t rows) noexcept;
  /// Others were fit to be part of a sum.
  void taken() noexcept { refused_ = {}; }
  /// The model is another one: what was judged before does not count.
  void begin();
  /// A checkpoint is on trial from here on: good() is about rows that follow. The rest goes on.
  void begin_trial();

  [[nodiscard]] bool diverged() const noexcept { return diverged_ || refused_.all; }
  /// It has been judged, and has not diverged.
  [[nodiscard]] bool sound() const noexcept { return judged_ && !diverged(); }
  [[nodiscard]] bool good() const noexcept { return good_; }

 private:
  struct Guess {
    double knows_shares = 0;   ///< loss of a row
    double knows_nothing = 0;  ///< same
  };
  [[nodiscard]] Guess guess() const;
  void count_targets(const BatchView& batch, std::size_t own);
  void judge();

  /// Rows that are judged together.
  struct Block {
    double badness = 0;  ///< sum over rows of their loss beside that which decides, each batch's capped
    double losses = 0;   ///< same, not capped
    std::uint64_t rows = 0;
    std::uint64_t batches = 0;

    void add(double loss, double decides, std::uint64_t of_rows);
    [[nodiscard]] bool full() const noexcept;
    /// Beside what decides.
    [[nodiscard]] bool exceeds() const noexcept { return badness > static_cast<double>(rows); }
  };

  const Targets targets_;
  const std::size_t label_count_;
  std::vector<double> labels_;                 ///< rows of each class, fading
  double values_ = 0, sum_ = 0, squares_ = 0;  ///< of targets that are any numbers, fading
  Block bad_;                                  ///< since it was judged last, beside a bad model
  Block trial_;                                ///< since good() was, beside a good one
  /// In a row.
  struct Refused {
    std::uint64_t rows = 0;
    std::uint32_t times = 0;
    bool all = false;  ///< enough that others will be, too
  };
  Refused refused_;
  bool bad_before_ = false;
  double loss_before_ = 0;
  bool diverged_ = false;
  bool good_ = false;
  bool judged_ = false;
};

}  // namespace rivulet::runtime
