#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "core/result.h"
#include "stream/dataset.h"

namespace rivulet::stream::feeding {

/// The records of one partition in the order in which it plays them.
class Deck {
 public:
  Deck(std::vector<std::uint32_t> records, bool repeat, std::uint64_t seed, std::uint64_t partition,
       Order order = Order::shuffled);
  /// Next record; nullopt when all were played. A deck that repeats is shuffled anew each time, unless
  /// the order is kept.
  std::optional<std::uint32_t> draw();
  /// Gives the last record back: it could not be sent yet.
  void put_back() noexcept { --at_; }
  [[nodiscard]] std::size_t size() const noexcept { return records_.size(); }
  [[nodiscard]] bool finished() const noexcept {
    return records_.empty() || (!repeat_ && at_ == records_.size());
  }

 private:
  std::vector<std::uint32_t> records_;
  std::size_t at_ = 0;
  std::uint64_t epoch_ = 0;
  bool repeat_;
  std::uint64_t seed_;
  std::uint64_t partition_;
  Order order_;
};

/// Deals every record of a data set, shuffled or in its order, to one partition, in proportion to `weights`,
/// so that all partitions run out at about the same time and no record is played twice. With
/// labels_per_device > 0 a partition is only dealt that many classes; every class has a partition if there
/// are enough places. A pure function of its arguments. Errors: usage (labels wanted, but the data set shows
/// none).
Result<std::vector<std::vector<std::uint32_t>>> deal(const Dataset& data, const std::vector<double>& weights,
                                                     int labels_per_device, std::uint64_t seed,
                                                     Order order = Order::shuffled);

}  // namespace rivulet::stream::feeding
