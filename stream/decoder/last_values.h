#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/record.h"

namespace rivulet::stream {

/// Last value of each feature, per partition, to fill rows that lack it. Bounded to 1024 partitions; later
/// ones have no last values. Rereading a partition from an earlier offset discards its values: they come from
/// later rows. Memory: 4 bytes per feature and partition. One thread.
class LastValues {
 public:
  explicit LastValues(std::size_t columns) : columns_(columns) {}
  /// Starts a record; its rows follow.
  void enter(const Record& record);
  /// Last value of a feature; NaN if unknown.
  [[nodiscard]] float of(std::size_t column) const noexcept;
  /// Records a valid row, including filled values.
  void row(std::span<const float> features) noexcept;

 private:
  struct Partition {
    std::int64_t offset = -1;
    std::vector<float> values;
  };
  std::size_t columns_;
  std::map<PartitionId, Partition> partitions_;
  Partition* now_ = nullptr;
};

}  // namespace rivulet::stream
