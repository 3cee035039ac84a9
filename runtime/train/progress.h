#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace rivulet::runtime {

/// Loss and accuracy over the last `window` rows, each measured before the model trained on it.
class Prequential {
 public:
  explicit Prequential(std::uint64_t window) : window_(window) {}
  void add(std::uint64_t rows, double loss_sum, std::uint64_t correct);
  [[nodiscard]] bool full() const noexcept { return rows_ >= window_; }
  /// Returns the mean loss; not finite while the window contains a batch with a non-finite loss.
  [[nodiscard]] double loss() const noexcept;
  [[nodiscard]] double accuracy() const noexcept {
    return rows_ > 0 ? static_cast<double>(correct_) / static_cast<double>(rows_) : 0;
  }

 private:
  struct Entry {
    std::uint64_t rows;
    double loss_sum;
    std::uint64_t correct;
  };
  const std::uint64_t window_;
  std::deque<Entry> entries_;
  std::uint64_t rows_ = 0;
  std::uint64_t correct_ = 0;
};

/// Time at which each of several fixed accuracy levels was first reached: {"0.90": seconds, ...}.
class TimeToAccuracy {
 public:
  void add(double seconds, double accuracy);
  [[nodiscard]] const std::map<std::string, double>& reached() const noexcept { return reached_; }

 private:
  std::map<std::string, double> reached_;
};

}  // namespace rivulet::runtime
