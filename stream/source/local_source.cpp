#include "stream/source/local_source.h"

namespace rivulet::stream {

LocalSource::LocalSource(std::span<const PartitionId> partitions) {
  for (const auto id : partitions)
    states_.push_back({.id = id, .next_offset = 0, .low_watermark = 0, .high_watermark = 0});
}

void LocalSource::set_paused(bool paused) noexcept {
  for (auto& state : states_) state.paused = paused;
}

std::size_t LocalSource::index_of(PartitionId id) const noexcept {
  std::size_t i = 0;
  while (i < states_.size() && states_[i].id != id) ++i;
  return i;
}

Status LocalSource::check_positions(std::span<const NextOffset> positions) const {
  for (const auto& position : positions) {
    const std::string name =
        std::to_string(position.partition.topic) + ":" + std::to_string(position.partition.partition);
    if (index_of(position.partition) == states_.size())
      return Error{ErrorCode::unavailable, "partition " + name + " is not one of this source"};
    if (position.offset < 0)
      return Error{ErrorCode::unavailable,
                   "partition " + name + " has no offset " + std::to_string(position.offset)};
  }
  return ok();
}

Status LocalSource::commit(std::span<const NextOffset> positions) {
  return check_positions(positions);
}

}  // namespace rivulet::stream
