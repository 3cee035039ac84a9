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

/// What the model answered for the last `window` rows, up to one block more or less: 16 blocks of sums, of
/// which the oldest is forgotten when the newest is full. Memory does not grow with the window: at most 400
/// kB. Owner: one thread.
class ScoreWindow {
 public:
  static constexpr std::size_t classes_counted = 1024;
  /// `names` of the classes; none: the rows have numbers.
  ScoreWindow(std::uint64_t window, const std::vector<std::string>& names);

  /// The first `counted` rows of the batch, by what was computed on it.
  void add(const devices::StepReport& report, const BatchView& batch, std::size_t counted);
  /// What it has seen is of another model.
  void clear();
  [[nodiscard]] OwnScores scores() const;

 private:
  static constexpr std::size_t blocks = 16;
  static constexpr std::size_t outputs_counted = 64;  ///< of a row of numbers, the first
  /// Targets of one output: mean and squares from it, so that large numbers which vary little lose nothing.
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
    std::uint64_t numbers = 0;  ///< errors below are of
    double absolute = 0, squared = 0;
    std::vector<Spread> targets;  ///< by output
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
  const std::vector<std::string> names_;      ///< of the classes that are shown
  const std::vector<std::string> all_names_;  ///< of those that are counted
  const bool all_counted_;
  std::array<Block, blocks> blocks_;
  std::size_t at_ = 0;                ///< the newest
  std::vector<ClassCounts> classes_;  ///< sums over blocks
  bool told_ = false;                 ///< the trainer tells its answers
};

}  // namespace rivulet::runtime
