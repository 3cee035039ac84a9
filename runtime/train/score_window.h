#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/row.h"
#include "devices/trainer.h"
#include "runtime/status/own_scores.h"

namespace rivulet::runtime {

/// Scores of the model's predictions for the last `window` rows, accurate to one block. Keeps sums in 16
/// blocks; when the newest block is full, drops the oldest. Maximum memory: 400 kB for any window. Owner: one
/// thread.
class ScoreWindow {
 public:
  static constexpr std::size_t classes_counted = 1024;
  /// `names`: names of the classes; empty for numeric targets.
  ScoreWindow(std::uint64_t window, const std::vector<std::string>& names);

  /// Adds the first `counted` rows of the batch with the results computed on it.
  void add(const devices::StepReport& report, const BatchView& batch, std::size_t counted);
  /// Call when the model was replaced. Clears the window.
  void clear();
  [[nodiscard]] OwnScores scores() const;

 private:
  static constexpr std::size_t blocks = 16;
  static constexpr std::size_t outputs_counted = 64;  ///< the first outputs of numeric targets
  /// Targets of one output: mean and squared distances from it, precise even if large values vary little.
  struct Spread {
    double rows = 0, mean = 0, squares = 0;
    void add(double value);
    void add(const Spread& other);
  };
  struct Block {
    std::uint64_t rows = 0;
    std::uint64_t correct = 0;
    double loss_sum = 0;
    std::vector<ClassCounts> classes;
    std::uint64_t numbers = 0;  ///< number of values in the sums below
    double absolute = 0, squared = 0;
    std::vector<Spread> targets;  ///< targets of each output
  };
  Block& newest();
  void forget(Block& block);
  void count_classes(Block& block, const devices::StepReport& report, const BatchView& batch,
                     std::size_t counted);
  static void count_errors(Block& block, const devices::StepReport& report, const BatchView& batch,
                           std::size_t counted);
  void add_classes(OwnScores& out) const;
  void add_errors(OwnScores& out) const;

  const std::uint64_t block_rows_;
  const std::vector<std::string> names_;      ///< names of the displayed classes
  const std::vector<std::string> all_names_;  ///< names of the counted classes
  const bool all_counted_;
  std::array<Block, blocks> blocks_;
  std::size_t at_ = 0;                ///< index of the newest block
  std::vector<ClassCounts> classes_;  ///< sums over blocks
  bool reported_ = false;             ///< the trainer reports its predictions
};

}  // namespace rivulet::runtime
