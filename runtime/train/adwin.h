#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace rivulet::runtime {

/// Whether the mean of a stream of numbers has changed: ADWIN, adaptive windowing (Bifet and Gavalda, SDM
/// 2007), with the numbers that River takes, so that it detects at the same values. It keeps as many of the
/// newest values as have one mean, as sums over buckets of 1, 2, 4, ... values, and looks for a place where
/// the older ones differ from the newer ones by more than chance allows. Values are best between 0 and 1: the
/// bound is made for these. Owner: who adds values, one thread; a copy goes on by itself. Cost: 5 KB, no
/// allocation; a value a few additions, each 32nd one more step for each bucket, 6 for each doubling of the
/// width.
class Adwin {
 public:
  struct Limits {
    std::uint32_t clock = 32;        ///< values from one look for a change to the next
    std::uint32_t least_window = 5;  ///< values on either side of a change
    std::uint32_t grace = 10;        ///< no look at so few values
  };

  /// `delta`: how likely it is that a look at a stream that does not change detects something; 0 < delta < 1.
  explicit Adwin(double delta = 0.002) : Adwin(delta, Limits{}) {}
  Adwin(double delta, Limits limits);

  /// True: at this value a change was detected. The oldest values were dropped until no place differs, but
  /// what is left may be mostly older than the change: the next value begins an empty window, as in River. A
  /// value that is not finite is left out.
  bool add(double value);

  /// Of the values in the window; of none: 0.
  [[nodiscard]] std::uint64_t width() const noexcept { return window_.width; }
  [[nodiscard]] double mean() const noexcept;
  [[nodiscard]] double variance() const noexcept;
  /// Means on either side of a change.
  struct Sides {
    double older = 0;
    double newer = 0;
  };
  /// Of the last detection, where it was clearest. What is found first is the oldest place that differs,
  /// behind which older values may lie, too.
  [[nodiscard]] const Sides& sides() const noexcept { return sides_; }
  [[nodiscard]] bool rose() const noexcept { return rose_; }

 private:
  static constexpr std::size_t most_alike = 5;  ///< buckets of one size
  static constexpr std::size_t sizes = 48;      ///< 2^48 values and more

  struct Bucket {
    double sum = 0;
    double squares = 0;  ///< of distances from the bucket's mean
  };
  /// Buckets of one size, the oldest first.
  struct Row {
    std::array<Bucket, most_alike + 1> buckets{};
    std::size_t count = 0;

    void push(Bucket bucket) { buckets[count++] = bucket; }
    void drop(std::size_t oldest);
  };
  struct Window {
    std::array<Row, sizes> rows{};  ///< the first has the newest values, one in each bucket
    std::size_t used = 1;           ///< rows
    std::uint64_t width = 0;
    double sum = 0;
    double squares = 0;  ///< of distances from the mean
    std::uint64_t added = 0;
  };

  void insert(double value);
  void merge_full_rows();
  void drop_oldest();
  /// Calls visit(sides, what chance allows between them) for each place, the oldest first,
  /// until it returns true.
  template <class Visit>
  void visit_places(const Visit& visit) const;
  /// Newer mean less older mean at the oldest place where they differ; 0: nowhere.
  [[nodiscard]] double change() const;
  [[nodiscard]] Sides clearest() const;
  [[nodiscard]] double bound(double older, double newer, double doubt) const;

  double delta_;
  Limits limits_;
  Window window_;
  bool detected_ = false;  ///< by the last value
  bool rose_ = false;
  Sides sides_;
};

}  // namespace rivulet::runtime
