#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "core/clock.h"
#include "core/wake.h"
#include "runtime/checkpoint/checkpointer.h"
#include "runtime/checkpoint/committable_offsets.h"
#include "runtime/checkpoint/saved_offsets.h"
#include "runtime/process/log.h"
#include "runtime/state/agreed_state.h"
#include "runtime/status/node_status.h"
#include "runtime/train/announce_watch.h"
#include "runtime/train/local_model.h"
#include "sync/membership/membership.h"
#include "sync/residual/residual.h"

namespace rivulet::runtime {

/// Saves the agreed state and handles what follows: the SAVED record in the control topic, the group's
/// commit, and the offsets that may then be committed. Owner: the train thread.
class CheckpointCycle {
 public:
  struct Parts {
    const Clock& clock;
    Checkpointer* checkpoints;  ///< null if nothing is saved
    sync::membership::Membership& membership;
    CommittableOffsets& commits;
    Wake& ingest;  ///< notified of new offsets
    const sync::Residual& residual;
    const LocalModel& model;
    NodeStatus& status;
    Logger& log;
    Duration interval;
    bool dry_run;
  };
  explicit CheckpointCycle(const Parts& parts) : parts_(parts) {}
  /// Records that the state from which this process starts is on disk.
  void begin(const Stamp& stamp) {
    saved_at_ = parts_.clock.now();
    saved_ = stamp;
  }

  /// Call when this device enters a view. A state saved in the last view that was not committed there cannot
  /// be committed any more, so the next one is due immediately: otherwise views that keep ending would keep
  /// commits away.
  void enter_view(std::uint64_t number) {
    view_ = number;
    if (saved_ > parts_.membership.committed().stamp) saved_at_ = parts_.clock.now() - parts_.interval;
  }

  [[nodiscard]] bool saves() const noexcept { return parts_.checkpoints != nullptr; }
  [[nodiscard]] bool busy() const { return saves() && parts_.checkpoints->busy(); }
  /// True if a state should be saved now. A new step since the last save is not required: a state adopted by
  /// a later view has a different stamp, and if it was not committed in its own view, it can be committed
  /// only under the new stamp.
  [[nodiscard]] bool is_due(TimePoint now, const AgreedState& state) const;
  /// Saves the state; call at the end of a checkpoint round. The offsets of this device's partitions may be
  /// committed once the group has committed the state.
  void save(const AgreedState& state, std::span<const PartitionId> own);
  [[nodiscard]] bool is_saved(const AgreedState& state) const { return saved_ == state.stamp; }
  /// True if the state is among the last that this device wrote to disk.
  [[nodiscard]] bool is_on_disk(const Stamp& stamp) const;
  /// Forgets uncommitted saved states, because the group's state has replaced this device's.
  void forget_saved() { uncommitted_.forget(); }
  /// Call in each step. Announces saved states and releases the offsets of committed ones. `control_words`:
  /// the last reported problem with the control topic.
  void watch(const std::string& control_words);
  /// Reads the file of a state in the background. take_fetched() returns its content, or an error such as io,
  /// and clears it.
  void fetch(const Stamp& stamp) { parts_.checkpoints->fetch(stamp); }
  [[nodiscard]] bool fetching() const { return parts_.checkpoints->fetching(); }
  std::optional<Result<std::vector<std::byte>>> take_fetched() { return parts_.checkpoints->take_fetched(); }
  /// After the last round of a view: saves the state if it is not saved yet. True once it is committed.
  bool last_is_committed(const AgreedState& state, std::span<const PartitionId> own);

 private:
  /// Returns the last measured score; nullopt while it covers too few rows.
  [[nodiscard]] std::optional<Score> score() const;
  [[nodiscard]] PrivateView kept_beside(const AgreedState& state) const;
  void begins_once(std::atomic<std::int64_t>& since_ns) const;
  void watch_announcing(TimePoint now, const std::string& control_words);

  const Parts parts_;
  SavedOffsets uncommitted_;
  Stamp committed_;                  ///< last reported to the checkpointer
  Stamp saved_;                      ///< last state given to the checkpointer
  std::uint64_t view_ = 0;           ///< last view that this device has entered
  std::array<Stamp, 16> on_disk_{};  ///< last states on disk, as a ring
  std::size_t next_on_disk_ = 0;
  TimePoint saved_at_{};
  AnnounceWatch announcing_;
};

}  // namespace rivulet::runtime
