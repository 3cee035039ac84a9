#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace rivulet::runtime {

/// Detects changes in the mean of a stream of values: ADWIN, adaptive windowing (Bifet and Gavalda, SDM
/// 2007), with River's constants, so that both implementations detect changes at the same values. Keeps the
/// longest window of the newest values that have one mean, as sums over buckets of 1, 2, 4, ... values. Looks
/// for a split where the older and the newer values differ by more than chance explains. The bound assumes
/// values between 0 and 1. Owner: one thread; copies are independent. Memory: 5 KB, no allocation. Cost: a
/// few additions per value; every 32nd value also checks each bucket, 6 for each doubling of the width.
class Adwin {
 public:
  struct Limits {
    std::uint32_t clock = 32;        ///< values between two checks
    std::uint32_t least_window = 5;  ///< minimum number of values on either side of a split
    std::uint32_t grace = 10;        ///< minimum width of a window that is checked
  };

  /// `delta`: probability of a false detection in one check of a stream without change; 0 < delta < 1.
  explicit Adwin(double delta = 0.002) : Adwin(delta, Limits{}) {}
  Adwin(double delta, Limits limits);

  /// Returns true if a change was detected at this value. Drops the oldest values until no split differs. The
  /// rest may still be older than the change, so the next value begins an empty window, as in River. Ignores
  /// values that are not finite.
  bool add(double value);

  /// Return statistics of the values in the window; 0 if it is empty.
  [[nodiscard]] std::uint64_t width() const noexcept { return window_.width; }
  [[nodiscard]] double mean() const noexcept;
  [[nodiscard]] double variance() const noexcept;
  /// Means on either side of a split.
  struct Sides {
    double older = 0;
    double newer = 0;
  };
  /// Returns the means at the clearest split of the last detection. The split found first is the oldest that
  /// differs: old values may still follow it.
  [[nodiscard]] const Sides& sides() const noexcept { return sides_; }
  [[nodiscard]] bool rose() const noexcept { return rose_; }

 private:
  static constexpr std::size_t most_alike = 5;  ///< buckets of one size
  static constexpr std::size_t sizes = 48;      ///< enough for more than 2^48 values

  struct Bucket {
    double sum = 0;
    double squares = 0;  ///< sum of squared distances from the bucket's mean
  };
  /// Buckets of one size, oldest first.
  struct Row {
    std::array<Bucket, most_alike + 1> buckets{};
    std::size_t count = 0;

    void push(Bucket bucket) { buckets[count++] = bucket; }
    void drop(std::size_t oldest);
  };
  struct Window {
    std::array<Row, sizes> rows{};  ///< the first row has the newest values, one per bucket
    std::size_t used = 1;           ///< rows
    std::uint64_t width = 0;
    double sum = 0;
    double squares = 0;  ///< sum of squared distances from the mean
    std::uint64_t added = 0;
  };

  void insert(double value);
  void merge_full_rows();
  void drop_oldest();
  /// Calls visit(sides, bound) for each split, oldest first, until it returns true. `bound`: the difference
  /// that chance explains.
  template <class Visit>
  void visit_places(const Visit& visit) const;
  /// Newer mean minus older mean at the oldest split that differs; 0 if none does.
  [[nodiscard]] double change() const;
  [[nodiscard]] Sides clearest() const;
  [[nodiscard]] double bound(double older, double newer, double doubt) const;

  double delta_;
  Limits limits_;
  Window window_;
  bool detected_ = false;  ///< the last value revealed a change
  bool rose_ = false;
  Sides sides_;
};

}  // namespace rivulet::runtime
