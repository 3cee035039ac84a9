#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "core/result.h"
#include "stream/dataset.h"

namespace rivulet::stream::feeding {

/// The records of one partition, in playing order.
class Deck {
 public:
  Deck(std::vector<std::uint32_t> records, bool repeat, std::uint64_t seed, std::uint64_t partition,
       Order order = Order::shuffled);
  /// Returns the next record; nullopt when all were played. A repeating deck is reshuffled each time, unless
  /// the order is kept.
  std::optional<std::uint32_t> draw();
  /// Undoes the last draw(): the record could not be sent yet.
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

/// Assigns each record of a data set, in shuffled or original order, to one partition, in proportion to
/// `weights`. All partitions run out at about the same time, and no record is played twice. With
/// labels_per_device > 0, each partition gets only that many classes; every class gets a partition if there
/// are enough places. Pure. Errors: usage (labels_per_device needs a data set with class labels).
Result<std::vector<std::vector<std::uint32_t>>> deal(const Dataset& data, const std::vector<double>& weights,
                                                     int labels_per_device, std::uint64_t seed,
                                                     Order order = Order::shuffled);

}  // namespace rivulet::stream::feeding
