#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/record.h"

namespace rivulet::stream {

/// What features last were, partition by partition, for rows that lack some of them. Of 1024 partitions;
/// those that come later have no last values. A partition that is read again from further back has none
/// either: it would fill rows with what came behind them. Memory: 4 bytes a feature and partition. One
/// thread.
class LastValues {
 public:
  explicit LastValues(std::size_t columns) : columns_(columns) {}
  /// Rows of this record come next.
  void enter(const Record& record);
  /// Of a feature; NaN: not known.
  [[nodiscard]] float of(std::size_t column) const noexcept;
  /// A row that is good, filled values included.
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
