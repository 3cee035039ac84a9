#include "runtime/train/guess_watch.h"

#include <algorithm>
#include <cmath>

namespace rivulet::runtime {
namespace {

constexpr std::uint64_t judged_rows = 1000;
constexpr std::uint64_t judged_batches = 8;
constexpr double counted_rows = 20'000;  ///< halves the counts at this number
constexpr double bad_guess = 10;
constexpr double bad_start = 3;
constexpr double good_guess = 2;
/// Cap on the loss of one batch, relative to the bad or good loss. So one batch adds at most half of what
/// eight batches at that loss add.
constexpr double worst = 4;
constexpr double falling = 0.9;
constexpr double mild = 3;  ///< relative to the bad loss: a healthy model recovers from there
constexpr double falling_fast = 0.5;
/// Rejections that count as divergence. Before that, ExplosionWatch raises its limits several times, enough
/// to accept correct rows.
constexpr std::uint32_t refused_times = 64;
constexpr std::uint64_t refused_rows = 2 * judged_rows;

}  // namespace

GuessWatch::GuessWatch(Targets targets, std::size_t classes)
    : targets_(targets), label_count_(classes), labels_(targets == Targets::classes ? classes : 0) {}

void GuessWatch::Block::add(double loss, double decides, std::uint64_t of_rows) {
  badness += static_cast<double>(of_rows) * std::min(worst, loss / decides);
  losses += static_cast<double>(of_rows) * loss / decides;
  rows += of_rows;
  ++batches;
}

bool GuessWatch::Block::full() const noexcept {
  return batches >= judged_batches && rows >= judged_rows;
}

void GuessWatch::begin() {
  bad_ = {};
  refused_ = {};
  diverged_ = judged_ = bad_before_ = false;
  begin_trial();
}

void GuessWatch::begin_trial() {
  trial_ = {};
  good_ = false;
}

void GuessWatch::refused(std::size_t rows) noexcept {
  refused_.rows += rows;
  ++refused_.times;
  refused_.all = refused_.times >= refused_times && refused_.rows >= refused_rows;
}

void GuessWatch::computed(const devices::StepReport& report, const BatchView& batch, std::size_t own,
                          bool finite) {
  own = std::min(own, batch.rows);
  if (own == 0 || report.rows == 0) return;
  count_targets(batch, own);
  // On a device with one class the guess has loss 0, so the loss of an untrained model is used as well.
  const Guess beside = guess();
  const double bad = std::max(bad_guess * beside.knows_shares, bad_start * beside.knows_nothing);
  const double good = std::max(good_guess * beside.knows_shares, beside.knows_nothing);
  if (good <= 0) return;
  const bool usable = finite && std::isfinite(report.loss_sum);
  const double loss = usable ? report.loss_sum / static_cast<double>(report.rows) : worst * bad;
  bad_.add(loss, bad, own);
  if (bad_.full()) judge();
  trial_.add(loss, good, own);
  if (!trial_.full()) return;
  good_ = !trial_.exceeds();
  trial_ = {};
}

void GuessWatch::count_targets(const BatchView& batch, std::size_t own) {
  const auto fade = [](double& count) { count /= 2; };
  if (targets_ == Targets::normalized) return;
  const std::size_t each = batch.targets.size() / batch.rows;
  for (const float target : batch.targets.first(own * each)) {
    if (targets_ == Targets::classes) {
      const auto label = static_cast<std::size_t>(std::max(0.0F, target));
      if (label < labels_.size()) ++labels_[label];
    } else {
      sum_ += double{target};
      squares_ += double{target} * double{target};
    }
    ++values_;
  }
  if (values_ < counted_rows) return;
  for (double* count : {&values_, &sum_, &squares_}) fade(*count);
  std::ranges::for_each(labels_, fade);
}

GuessWatch::Guess GuessWatch::guess() const {
  if (targets_ == Targets::normalized) return {1, 1};
  if (values_ == 0) return {};
  if (targets_ == Targets::numbers) {
    const double mean = sum_ / values_;
    return {std::max(0.0, squares_ / values_ - mean * mean), squares_ / values_};
  }
  double entropy = 0;
  for (const double rows : labels_)
    if (rows > 0) entropy -= rows / values_ * std::log(rows / values_);
  return {entropy, std::log(static_cast<double>(std::max<std::size_t>(2, label_count_)))};
}

void GuessWatch::judge() {
  // On new kinds of rows, or on the first faults in a stream, the loss of a healthy model is high at first
  // and then falls. A loss that began very high must fall fast.
  const double loss = bad_.losses / static_cast<double>(bad_.rows);
  const bool falls = loss < (loss < mild ? falling : falling_fast) * loss_before_;
  diverged_ = bad_.exceeds() && bad_before_ && !falls;
  bad_before_ = bad_.exceeds();
  loss_before_ = loss;
  judged_ = true;
  bad_ = {};
}

}  // namespace rivulet::runtime
