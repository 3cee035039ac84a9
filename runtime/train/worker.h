#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "buffer/batch.h"
#include "buffer/ledger.h"
#include "buffer/row_buffer.h"
#include "core/clock.h"
#include "core/metrics.h"
#include "core/wake.h"
#include "devices/device.h"
#include "devices/optimizer.h"
#include "devices/trainer.h"
#include "runtime/checkpoint/checkpointer.h"
#include "runtime/checkpoint/committable_offsets.h"
#include "runtime/checkpoint/saved_offsets.h"
#include "runtime/decisions/decision_log.h"
#include "runtime/ingest/seek_requests.h"
#include "runtime/process/agent.h"
#include "runtime/process/log.h"
#include "runtime/process/stop.h"
#include "runtime/state/agreed_state.h"
#include "runtime/state/state_handle.h"
#include "runtime/status/ledger_metrics.h"
#include "runtime/status/node_status.h"
#include "runtime/train/announce_watch.h"
#include "runtime/train/progress.h"
#include "runtime/train/snapshot_slot.h"
#include "runtime/train/view.h"
#include "sync/membership/membership.h"
#include "sync/round/compressor_cache.h"
#include "sync/round/session.h"

namespace rivulet::runtime {

struct WorkerConfig {
  sync::SessionConfig session;
  devices::OptimizerConfig optimizer;
  StopAfter stop_after;
  bool dry_run = false;
  bool reform = true;  ///< sync.on_peer_loss = "reform"
  Duration peer_deadline = std::chrono::seconds(5);
  Duration checkpoint_interval = std::chrono::seconds(30);
  StateOwner owner;                ///< for images of the state
  std::string group;               ///< hash of the group's configuration, for the decision log
  bool stop_on_nonfinite = false;  ///< train.on_nonfinite = "stop"
  std::uint32_t digest_every = 1;  ///< K
  bool classification = true;      ///< there is an accuracy to measure
  std::uint64_t prequential_window = 1000;
  double age_at_start_s = 0;  ///< of the process when this object was made, for first_step_s
};

/// How a worker's life ended.
struct Ending {
  std::optional<Error> error;  ///< none: asked to stop, or the group stopped together
  bool leaver_lost = false;    ///< the error is a peer that left on purpose
};

/// Batch -> gradient -> agreed update: owns the consumer end of the buffer, the agreed state, the Trainer
/// and, one at a time, a View. A loop of phases; every wait is a return. On the first error of a view the
/// view is destroyed, the unfinished round's rows go back to the buffer, and state and gradient stay as they
/// were.
///
///   forming -> connecting -> adopting -> collecting -> [moving] -> computing -> agreeing -> [paying] ->
///   collecting ...
///                                                                         +-> draining -> ended
class Worker final : public Agent {
 public:
  struct Parts {
    const Clock& clock;
    Wake& wake;    ///< of this agent
    Wake& ingest;  ///< told when slots are free again
    buffer::RowBuffer& rows;
    buffer::Ledger& ledger;
    CommittableOffsets& commits;
    SeekRequests& rewinds;
    devices::Device& device;
    devices::Trainer& trainer;
    StateHandle& state;
    sync::membership::Membership& membership;
    const sync::Connect& connect;
    sync::SyncCatalog catalog;
    SnapshotSlot& snapshots;
    Checkpointer* checkpoints;  ///< null: nothing is saved
    DecisionLog& decisions;
    NodeStatus& status;
    MetricsSink& metrics;
    Logger& log;
    const StopRequest& stop;
  };
  /// Allocates the batch, the contribution and the scratch on the device. Errors: unavailable (memory).
  static Result<std::unique_ptr<Worker>> create(const WorkerConfig& config, const Parts& parts);
  ~Worker() override;

  [[nodiscard]] std::string_view name() const noexcept override { return "train"; }
  Turn step() override;
  [[nodiscard]] bool ended() const noexcept { return phase_ == Phase::ended; }
  [[nodiscard]] const Ending& ending() const noexcept { return ending_; }
  /// The state is that of a group, or was: this process has been in a view.
  [[nodiscard]] bool entered_group() const noexcept { return training_since_ != TimePoint::max(); }
  /// Trained by the group since this process entered it.
  [[nodiscard]] std::uint64_t rows_since_entry() const noexcept { return parts_.state->rows - entry_.rows; }
  [[nodiscard]] const TimeToAccuracy& time_to_accuracy() const noexcept { return time_to_accuracy_; }

 private:
  enum class Phase : std::uint8_t {
    forming,
    connecting,
    adopting,
    collecting,
    moving,
    agreeing,
    paying,
    draining,
    ended
  };
  struct Meters;

  Worker(const WorkerConfig& config, const Parts& parts);
  Status allocate();

  // worker_view.cpp: into a view and out of it
  Turn form();
  Turn connect();
  Turn not_connected(Error error);
  Turn not_adopted(Error error);
  [[nodiscard]] Duration adoption_patience() const;
  void settle_view();
  Turn adopt();
  Status replace_state(std::span<const std::byte> image);
  void stand_at_state();
  Status hold_state();
  Turn enter_view();
  void settle_limits();
  Status begin_lineage();
  void look_for_unclaimed();
  Turn part();
  void put_batch_back();
  Turn lost(Error error);
  Turn form_again(const std::string& why);
  Turn leave_alone();
  Turn end(std::optional<Error> error, bool leaver_lost = false);

  // worker.cpp: the phases of a round
  Turn collect();
  Turn move_rows();
  Turn agree();
  Turn pay();
  bool watch_membership(TimePoint now);
  [[nodiscard]] bool asked_to_end() const;
  Duration leaving_for(TimePoint now);
  bool may_enter(TimePoint now);
  void fill_batch();
  Turn compute_and_enter();
  void measure_state(TimePoint now);
  Turn after_round();
  Turn again() { return {.work = 1}; }
  Turn later(Duration d);
  Turn wait_for_peers();
  Result<bool> compute();

  // worker_checkpoint.cpp: what is saved, and what follows from it
  [[nodiscard]] bool checkpoint_is_due(TimePoint now) const;
  void save_state();
  void watch_saved();
  void watch_announcing(TimePoint now);
  bool last_is_committed();

  // worker_round.cpp: what a plan means for state and rows
  sync::Facts my_facts(TimePoint now);
  sync::FactsSection my_section() const;
  Status announce();
  Status carry_out_plan();
  Status prepare_gradient();
  Status prepare_delta();
  Status local_step();
  struct Step;
  Result<bool> apply_agreed();
  Result<Step> make_step(AgreedState& next);
  Status apply_gradients(AgreedState& next, Step& made);
  void apply_parameters(AgreedState& next);
  Status fold_table();
  void settle_folded(bool trained);
  void move_next_offsets();
  enum class Fate : std::uint8_t { trained, dropped, dry_run };
  void settle_batch(Fate fate);
  void warn_of_nonfinite(std::size_t rows);
  void keep_pending(Fate fate);
  [[nodiscard]] bool dry_run_is_over() const;
  Status refresh_digest();

  // worker_account.cpp
  void account_round();
  void count_mode();
  void count_early();
  void count_bytes();
  void observe_delay();

  // constant
  const WorkerConfig config_;
  Parts parts_;
  std::unique_ptr<Meters> meters_;
  std::unique_ptr<devices::Memory> batch_memory_;
  std::unique_ptr<devices::Memory> contribution_memory_;
  std::unique_ptr<devices::Memory> agreed_memory_;
  GradientView contribution_;    ///< [P + B] on the device
  GradientView agreed_scratch_;  ///< [P + B] on the host

  // train thread
  Phase phase_ = Phase::forming;
  sync::CompressorCache compressors_;  ///< lent to the session of each view
  std::unique_ptr<View> view_;
  std::unique_ptr<buffer::Batch> batch_;
  std::optional<devices::ModelState> local_;  ///< private parameters while local steps are pending
  std::uint64_t local_steps_ = 0;             ///< made on local_
  std::uint32_t rows_since_sync_ = 0;
  SavedOffsets uncommitted_;
  Stamp committed_;  ///< last told to the checkpointer
  Stamp saved_;      ///< last state given to the checkpointer
  TimePoint saved_at_{};
  AnnounceWatch announcing_;
  std::string control_words_;         ///< what the control topic complained about last
  buffer::Cursors next_offsets_;      ///< of each own partition: what is below was used, pending_ included
  std::uint32_t generation_ = 0;      ///< of the rows that count, since the reader was sent elsewhere last
  std::uint64_t dry_run_rows_ = 0;    ///< of a dry run, whose state counts nothing
  std::uint64_t dry_run_rounds_ = 0;  ///< of a dry run
  buffer::Account pending_;           ///< of rounds that did not aggregate, announced by the next that does
  buffer::Account announced_;         ///< in this round's facts: pending_ and the batch's
  GradientView mine_;                 ///< host view of the contribution of this round
  bool computed_ = false;             ///< contribution_ belongs to the batch as it is
  bool batch_finite_ = true;
  bool incomplete_ = false;
  devices::StepReport report_;
  Digest digest_;
  std::uint64_t round_in_view_ = 0;
  TimePoint round_ended_{};
  TimePoint entered_{};
  TimePoint training_since_ = TimePoint::max();
  sync::ViewSpec::Clocks entry_;        ///< of the state when this process entered its first view
  sync::ViewSpec::Clocks counts_from_;  ///< of the state when the group began to count: limits are from there
  TimePoint next_membership_look_{};
  std::optional<TimePoint> asked_to_leave_;
  TimePoint form_again_at_{};
  Duration forming_pause_{};
  TimePoint say_again_at_{};
  TimePoint warn_again_at_{};
  LedgerMetrics books_;
  double wait_seconds_ = 0;
  double compute_seconds_ = 0;
  double sync_seconds_ = 0;
  TimePoint created_{};
  Prequential prequential_;
  TimeToAccuracy time_to_accuracy_;
  Ending ending_;
};

}  // namespace rivulet::runtime
