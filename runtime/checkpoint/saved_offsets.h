#pragma once
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "runtime/checkpoint/committable_offsets.h"
#include "runtime/state/agreed_state.h"

namespace rivulet::runtime {

/// Next offsets of this device's partitions in states that are saved but not committed yet. An offset reaches
/// the board only when a state that covers it is committed. Owner: the train thread.
class SavedOffsets {
 public:
  static constexpr std::size_t states_max = 16;  ///< drops the oldest first: newer states cover more

  /// `own`: this device's partitions.
  void saved(const AgreedState& state, std::span<const PartitionId> own) {
    State entry{state.stamp, {}};
    for (const PartitionId& id : own)
      if (const auto known = state.partitions.find(id); known != state.partitions.end())
        entry.offsets.push_back({id, known->second.next.offset});
    states_.push_back(std::move(entry));
    if (states_.size() > states_max) states_.pop_front();
  }
  /// Call when the group's state replaced the local one: entries may belong to an abandoned history, and a
  /// commit of a later lineage would release their offsets.
  void forget() noexcept { states_.clear(); }
  /// Passes the offsets covered by this committed state to the board. Returns true if there were any.
  bool committed(const Stamp& stamp, CommittableOffsets& board) {
    bool news = false;
    for (; !states_.empty() && states_.front().stamp <= stamp; states_.pop_front()) {
      for (const auto& next : states_.front().offsets) board.covered(next.partition, {next.offset, 0});
      news = true;
    }
    return news;
  }

 private:
  struct State {
    Stamp stamp;
    std::vector<NextOffset> offsets;
  };
  std::deque<State> states_;
};

}  // namespace rivulet::runtime
