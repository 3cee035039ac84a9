#include "runtime/train/score_window.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace rivulet::runtime {
namespace {

std::vector<std::string> first_of(const std::vector<std::string>& names, std::size_t most) {
  return {names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most))};
}

}  // namespace

void ScoreWindow::Spread::add(double value) {
  rows += 1;
  const double off = value - mean;
  mean += off / rows;
  squares += off * (value - mean);
}

void ScoreWindow::Spread::add(const Spread& other) {
  if (other.rows == 0) return;
  const double all = rows + other.rows;
  const double off = other.mean - mean;
  squares += other.squares + off * off * rows * other.rows / all;
  mean += off * other.rows / all;
  rows = all;
}

ScoreWindow::ScoreWindow(std::uint64_t window, const std::vector<std::string>& names)
    : block_rows_(std::max<std::uint64_t>(1, window / blocks)),
      names_(first_of(names, OwnScores::classes_shown)),
      all_names_(first_of(names, classes_counted)),
      all_counted_(names.size() <= classes_counted),
      classes_(all_names_.size()) {
  for (Block& block : blocks_) block.classes.resize(all_names_.size());
}

void ScoreWindow::add(const devices::StepReport& report, const BatchView& batch, std::size_t counted) {
  counted = std::min(counted, batch.rows);
  if (counted == 0) return;
  Block& block = newest();
  block.rows += counted;
  block.correct += std::min<std::uint64_t>(report.correct, counted);
  block.loss_sum += report.loss_sum;
  if (report.answers.empty()) return;
  reported_ = true;
  if (all_names_.empty())
    count_errors(block, report, batch, counted);
  else
    count_classes(block, report, batch, counted);
}

/// Batches are not split: a longer one enlarges its block.
ScoreWindow::Block& ScoreWindow::newest() {
  if (blocks_[at_].rows < block_rows_) return blocks_[at_];
  at_ = (at_ + 1) % blocks;
  forget(blocks_[at_]);
  return blocks_[at_];
}

void ScoreWindow::clear() {
  for (Block& block : blocks_) forget(block);
}

void ScoreWindow::forget(Block& block) {
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    classes_[c].rows -= block.classes[c].rows;
    classes_[c].predicted -= block.classes[c].predicted;
    classes_[c].right -= block.classes[c].right;
  }
  std::ranges::fill(block.classes, ClassCounts{});
  std::ranges::fill(block.targets, Spread{});
  block.rows = block.correct = block.numbers = 0;
  block.loss_sum = block.absolute = block.squared = 0;
}

void ScoreWindow::count_classes(Block& block, const devices::StepReport& report, const BatchView& batch,
                                std::size_t counted) {
  RIVULET_CHECK(report.answers.size() == batch.rows, "the answers belong to a different batch");
  for (std::size_t row = 0; row < counted; ++row) {
    const auto label = static_cast<std::size_t>(batch.targets[row]);
    const auto answer = static_cast<std::size_t>(report.answers[row]);
    const auto count = [&](std::size_t c, std::uint64_t ClassCounts::* what) {
      if (c >= classes_.size()) return;
      ++(classes_[c].*what);
      ++(block.classes[c].*what);
    };
    count(label, &ClassCounts::rows);
    count(answer, &ClassCounts::predicted);
    if (label == answer) count(label, &ClassCounts::right);
  }
}

void ScoreWindow::count_errors(Block& block, const devices::StepReport& report, const BatchView& batch,
                               std::size_t counted) {
  RIVULET_CHECK(report.answers.size() == batch.targets.size(), "the answers belong to a different batch");
  const std::size_t outputs = batch.targets.size() / batch.rows;
  const std::size_t looked_at = std::min(outputs, outputs_counted);
  block.targets.resize(looked_at);
  for (std::size_t row = 0; row < counted; ++row)
    for (std::size_t o = 0; o < looked_at; ++o) {
      const double target = batch.targets[row * outputs + o];
      const double error = report.answers[row * outputs + o] - target;
      block.absolute += std::abs(error);
      block.squared += error * error;
      block.targets[o].add(target);
    }
  block.numbers += counted * looked_at;
}

/// Sums up doubles at each call, because a non-finite value would never leave a running sum.
OwnScores ScoreWindow::scores() const {
  OwnScores out;
  double loss = 0;
  std::uint64_t correct = 0;
  for (const Block& block : blocks_) {
    out.rows += block.rows;
    correct += block.correct;
    loss += block.loss_sum;
  }
  if (out.rows == 0) return out;
  const auto rows = static_cast<double>(out.rows);
  out.loss = std::isfinite(loss) ? loss / rows : std::numeric_limits<double>::infinity();
  if (all_names_.empty()) {
    add_errors(out);
    return out;
  }
  out.accuracy = static_cast<double>(correct) / rows;
  if (reported_) add_classes(out);
  return out;
}

void ScoreWindow::add_classes(OwnScores& out) const {
  out.names = names_;
  out.classes.assign(classes_.begin(), classes_.begin() + static_cast<std::ptrdiff_t>(names_.size()));
  std::uint64_t rows = 0;
  for (const ClassCounts& c : classes_) rows += c.rows;
  if (!all_counted_ || rows == 0) return;
  const auto largest = std::ranges::max_element(classes_, {}, &ClassCounts::rows);
  out.largest_share = static_cast<double>(largest->rows) / static_cast<double>(rows);
  out.largest_class = all_names_[static_cast<std::size_t>(largest - classes_.begin())];
}

void ScoreWindow::add_errors(OwnScores& out) const {
  std::uint64_t numbers = 0;
  double absolute = 0;
  double squared = 0;
  std::vector<Spread> targets(outputs_counted);
  for (const Block& block : blocks_) {
    numbers += block.numbers;
    absolute += block.absolute;
    squared += block.squared;
    for (std::size_t o = 0; o < block.targets.size(); ++o) targets[o].add(block.targets[o]);
  }
  if (numbers == 0) return;
  out.mean_absolute_error = absolute / static_cast<double>(numbers);
  double squares = 0;
  for (const Spread& of : targets) squares += of.squares;
  if (squares > 0) out.r2 = 1 - squared / squares;
}

}  // namespace rivulet::runtime
