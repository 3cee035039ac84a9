#pragma once
#include <span>
#include <vector>

#include "stream/source.h"

namespace rivulet::stream {

/// The part that sources without a broker share: states of the partitions, back-pressure, commits that need
/// nobody.
class LocalSource : public RecordSource {
 public:
  explicit LocalSource(std::span<const PartitionId> partitions);
  [[nodiscard]] std::span<const PartitionState> partitions() const noexcept final { return states_; }
  /// Does nothing: a local source has nowhere to commit to.
  Status commit(std::span<const NextOffset> positions) final;

 protected:
  [[nodiscard]] std::span<PartitionState> states() noexcept { return states_; }
  void set_paused(bool paused) noexcept;
  /// Errors: unavailable (not a partition of this source, a negative offset).
  Status check_positions(std::span<const NextOffset> positions) const;
  [[nodiscard]] std::size_t index_of(PartitionId id) const noexcept;  ///< states().size() if it is not ours

 private:
  std::vector<PartitionState> states_;
};

}  // namespace rivulet::stream
