#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stream/source.h"

namespace rivulet::stream {

/// Common part of sources without a broker: assigned partitions, back-pressure, and no-op commits. `Own`: a
/// source's additional state per partition.
template <class Own>
class LocalSource : public RecordSource {
 public:
  [[nodiscard]] std::span<const PartitionState> partitions() const noexcept final { return states_; }
  /// Does nothing: a local source has no broker to commit to.
  Status commit(std::span<const NextOffset>) final { return ok(); }
  Status assign(const Assignment& assignment) final {
    for (const auto& [id, cursor] : assignment.cursors) {
      if (!has(id)) return absent(id);
      if (cursor && cursor->offset < 0) return no_offset(id, cursor->offset);
    }
    std::vector<PartitionState> states;
    std::vector<Own> owns;
    for (const auto& [id, cursor] : assignment.cursors) {
      const auto offset = cursor ? std::optional(cursor->offset) : std::nullopt;
      const auto held = std::ranges::find(states_, id, &PartitionState::id);
      if (held != states_.end()) {
        states.push_back(*held);
        owns.push_back(std::move(owns_[static_cast<std::size_t>(held - states_.begin())]));
        if (offset) move(states.back(), owns.back(), *offset);
      } else {
        states.push_back({.id = id, .next_offset = 0, .low_watermark = 0, .high_watermark = 0});
        owns.push_back(begin(states.back(), offset));
      }
    }
    states_ = std::move(states);
    owns_ = std::move(owns);
    assigned();
    return ok();
  }

 protected:
  /// Whether this source has such a partition.
  [[nodiscard]] virtual bool has(const PartitionId&) const { return true; }
  /// Completes the state of a newly assigned partition, to be read from `offset`, or else from its beginning.
  virtual Own begin(PartitionState& state, std::optional<std::int64_t> offset) = 0;
  virtual void move(PartitionState& state, Own& own, std::int64_t offset) = 0;
  /// Called after each assignment.
  virtual void assigned() {}

  [[nodiscard]] std::size_t size() const noexcept { return states_.size(); }
  [[nodiscard]] PartitionState& state(std::size_t i) noexcept { return states_[i]; }
  [[nodiscard]] const PartitionState& state(std::size_t i) const noexcept { return states_[i]; }
  [[nodiscard]] Own& own(std::size_t i) noexcept { return owns_[i]; }
  [[nodiscard]] const Own& own(std::size_t i) const noexcept { return owns_[i]; }
  void set_paused(bool paused) noexcept {
    for (auto& state : states_) state.paused = paused;
  }

 private:
  static std::string name_of(const PartitionId& id) {
    return "partition " + std::to_string(id.topic) + ":" + std::to_string(id.partition);
  }
  static Error absent(const PartitionId& id) {
    return {ErrorCode::unavailable, name_of(id) + " does not exist in this source"};
  }
  static Error no_offset(const PartitionId& id, std::int64_t offset) {
    return {ErrorCode::unavailable, name_of(id) + " has no offset " + std::to_string(offset)};
  }

  std::vector<PartitionState> states_;  ///< ordered
  std::vector<Own> owns_;
};

}  // namespace rivulet::stream
