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

/// Saving the agreed state and what follows from it: SAVED in the control topic, the group's commit, offsets
/// that may be published. Owner: the train thread.
class CheckpointCycle {
 public:
  struct Parts {
    const Clock& clock;
    Checkpointer* checkpoints;  ///< null: nothing is saved
    sync::membership::Membership& membership;
    CommittableOffsets& commits;
    Wake& ingest;  ///< told of new offsets
    const sync::Residual& residual;
    const LocalModel& model;
    NodeStatus& status;
    Logger& log;
    Duration interval;
    bool dry_run;
  };
  explicit CheckpointCycle(const Parts& parts) : parts_(parts) {}
  /// The state that this process begins with is on the disk.
  void begin(const Stamp& stamp) {
    saved_at_ = parts_.clock.now();
    saved_ = stamp;
  }

  [[nodiscard]] bool saves() const noexcept { return parts_.checkpoints != nullptr; }
  [[nodiscard]] bool busy() const { return saves() && parts_.checkpoints->busy(); }
  /// Also without a step since the last one: a state that a later view has adopted is another stamp, and what
  /// was not committed in its own view can be committed only as that.
  [[nodiscard]] bool is_due(TimePoint now, const AgreedState& state) const;
  /// At the end of a checkpoint round. Offsets of this device's own partitions may be published once the
  /// group has committed it.
  void save(const AgreedState& state, std::span<const PartitionId> own);
  [[nodiscard]] bool is_saved(const AgreedState& state) const { return saved_ == state.stamp; }
  /// It is among the last that got to the disk of this device.
  [[nodiscard]] bool is_on_disk(const Stamp& stamp) const;
  /// The state was replaced by the group's.
  void forget_saved() { uncommitted_.forget(); }
  /// At each step: what was saved is announced, what is committed is published. `control_words`: what the
  /// control topic complained about last.
  void watch(const std::string& control_words);
  /// The file of a state, read beside the training; then taken, once. Errors: io and the like.
  void fetch(const Stamp& stamp) { parts_.checkpoints->fetch(stamp); }
  [[nodiscard]] bool fetching() const { return parts_.checkpoints->fetching(); }
  std::optional<Result<std::vector<std::byte>>> take_fetched() { return parts_.checkpoints->take_fetched(); }
  /// After the last round of a view: the checkpointer may still have been busy with an earlier state.
  bool last_is_committed(const AgreedState& state, std::span<const PartitionId> own);

 private:
  /// As it was measured last; nothing while that is of too few rows.
  [[nodiscard]] std::optional<Score> score() const;
  [[nodiscard]] PrivateView kept_beside(const AgreedState& state) const;
  void begins_once(std::atomic<std::int64_t>& since_ns) const;
  void watch_announcing(TimePoint now, const std::string& control_words);

  const Parts parts_;
  SavedOffsets uncommitted_;
  Stamp committed_;                  ///< last told to the checkpointer
  Stamp saved_;                      ///< last state given to the checkpointer
  std::array<Stamp, 16> on_disk_{};  ///< the last ones, in a ring
  std::size_t next_on_disk_ = 0;
  TimePoint saved_at_{};
  AnnounceWatch announcing_;
};

}  // namespace rivulet::runtime
