#include "runtime/train/progress.h"

#include <array>
#include <utility>

namespace rivulet::runtime {

void Prequential::add(std::uint64_t rows, double loss_sum, std::uint64_t correct) {
  if (rows == 0) return;
  entries_.push_back({rows, loss_sum, correct});
  rows_ += rows;
  correct_ += correct;
  while (entries_.size() > 1 && rows_ - entries_.front().rows >= window_) {
    rows_ -= entries_.front().rows;
    correct_ -= entries_.front().correct;
    entries_.pop_front();
  }
}

/// Sums up the entries at each call, because a non-finite value would never leave a running sum.
double Prequential::loss() const noexcept {
  double sum = 0;
  for (const Entry& entry : entries_) sum += entry.loss_sum;
  return rows_ > 0 ? sum / static_cast<double>(rows_) : 0;
}

void TimeToAccuracy::add(double seconds, double accuracy) {
  static constexpr std::array<std::pair<double, const char*>, 7> levels{{{0.50, "0.50"},
                                                                         {0.80, "0.80"},
                                                                         {0.90, "0.90"},
                                                                         {0.95, "0.95"},
                                                                         {0.97, "0.97"},
                                                                         {0.98, "0.98"},
                                                                         {0.99, "0.99"}}};
  // An accuracy above one level is above all lower levels: the number of reached levels is enough.
  while (reached_.size() < levels.size() && accuracy >= levels[reached_.size()].first)
    reached_.emplace(levels[reached_.size()].second, seconds);
}

}  // namespace rivulet::runtime
