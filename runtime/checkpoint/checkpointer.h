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

/// A state on this device's disk.
struct SavedState {
  Stamp stamp;
  std::string digest;
  std::string file_hash;
};

/// Writes checkpoints off the training path. At the end of a checkpoint round the train thread copies the
/// agreed state into a single slot. This agent encodes, writes and syncs it; the train thread then announces
/// it to the group. If the slot is busy, the checkpoint is skipped and counted. After a failed write, nothing
/// is announced and older files stay. The next checkpoint is attempted, since a full disk may have space
/// again. After two consecutive disk failures (EIO) no more are written: such a disk's syncs cannot be
/// trusted.
class Checkpointer final : public Agent {
 public:
  struct Parts {
    const Clock& clock;
    devices::Device& device;
    MetricsSink& metrics;
    Logger& log;
    Wake& wake;    ///< wake of this agent
    Wake& worker;  ///< notified when a state is on disk or a file was read
  };
  /// `space` must have the model's layout.
  Checkpointer(CheckpointFolder folder, std::size_t keep, StateOwner owner, devices::ModelState space,
               const Parts& parts);

  // train thread
  /// Copies the state and the private arrays; returns false while the last checkpoint is still being written.
  /// `score`: the model's score, if measured.
  bool offer(const AgreedState& state, const PrivateView& kept = {}, std::optional<Score> score = {});
  /// Returns the state written since the last call; nullopt if there is none.
  std::optional<SavedState> take_saved();
  /// The group has committed this state: older files may be removed.
  void committed(const Stamp& stamp);
  /// Requests the file of a state; take_fetched() returns it.
  void fetch(const Stamp& stamp);
  [[nodiscard]] bool fetching();
  std::optional<Result<std::vector<std::byte>>> take_fetched();
  [[nodiscard]] bool busy() const noexcept {
    return state_.load(std::memory_order_acquire) == State::requested;
  }

  // checkpoint thread
  [[nodiscard]] std::string_view name() const noexcept override { return "checkpoint"; }
  Turn step() override;

 private:
  enum class State : std::uint8_t { resting, requested };
  void write();
  void write_private();
  void write_note();
  bool read_requested();
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
  int disk_failures_ = 0;  ///< consecutive
  // both
  std::mutex mutex_;
  std::optional<SavedState> saved_;
  std::optional<Stamp> requested_file_;
  std::optional<Result<std::vector<std::byte>>> fetched_;
  Stamp committed_;
};

}  // namespace rivulet::runtime
