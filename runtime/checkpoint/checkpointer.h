#pragma once
#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "core/metrics.h"
#include "core/wake.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/process/agent.h"
#include "runtime/process/log.h"
#include "runtime/state/agreed_state.h"

namespace rivulet::runtime {

/// A state that is on the disk of this device.
struct SavedState {
  Stamp stamp;
  std::string digest;
  std::string file_hash;
};

/// Writes checkpoints off the training path: the train thread copies the agreed state into the one slot at
/// the end of a checkpoint round, this agent encodes, writes and syncs it, and the train thread announces it
/// to the group. A slot that is still busy skips the checkpoint and counts it. A state that could not be
/// written is never announced, the files before it stay, and the next one is tried: a full disk may have room
/// again. A disk that fails (EIO) twice in a row gets no more: what it reports as synced is worth nothing.
class Checkpointer final : public Agent {
 public:
  struct Parts {
    const Clock& clock;
    devices::Device& device;
    MetricsSink& metrics;
    Logger& log;
    Wake& wake;    ///< of this agent
    Wake& worker;  ///< notified when a state is on the disk
  };
  /// `space` has the layout of the model.
  Checkpointer(CheckpointFolder folder, std::size_t keep, StateOwner owner, devices::ModelState space,
               const Parts& parts);

  // train thread
  /// Takes a copy; false: the last one is still being written. Costs a copy of the state, and of what the
  /// device keeps beside it. `score`: how good it is, if that was measured.
  bool offer(const AgreedState& state, const PrivateView& kept = {}, std::optional<Score> score = {});
  /// What has been written since the last call.
  std::optional<SavedState> take_saved();
  /// The group has committed this: older files may go.
  void committed(const Stamp& stamp);
  /// Reads the file of a state, for the train thread to take.
  void fetch(const Stamp& stamp);
  [[nodiscard]] bool fetching();
  std::optional<Result<std::vector<std::byte>>> take_fetched();
  [[nodiscard]] bool busy() const noexcept { return state_.load(std::memory_order_acquire) == State::wanted; }

  // checkpoint thread
  [[nodiscard]] std::string_view name() const noexcept override { return "checkpoint"; }
  Turn step() override;

 private:
  enum class State : std::uint8_t { resting, wanted };
  void write();
  void write_private();
  void write_note();
  bool read_wanted();
  void failed(const Error& error);

  // constant
  const std::size_t keep_;
  const StateOwner owner_;
  Parts parts_;
  Counter& written_;
  Counter& skipped_;
  Counter& failed_;
  Histogram& duration_;
  Gauge& size_;
  Gauge& last_;
  // slot: train thread while resting, checkpoint thread while wanted
  std::atomic<State> state_{State::resting};
  AgreedState slot_;
  PrivatePart private_slot_;
  std::optional<Score> score_slot_;
  // checkpoint thread
  CheckpointFolder folder_;
  int disk_failures_ = 0;  ///< in a row
  // both
  std::mutex mutex_;
  std::optional<SavedState> saved_;
  std::optional<Stamp> wanted_file_;
  std::optional<Result<std::vector<std::byte>>> fetched_;
  Stamp committed_;
};

}  // namespace rivulet::runtime
