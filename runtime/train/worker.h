#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
#include "runtime/decisions/decision_log.h"
#include "runtime/ingest/assignment_slot.h"
#include "runtime/ingest/stream_gauge.h"
#include "runtime/process/agent.h"
#include "runtime/process/log.h"
#include "runtime/process/stop.h"
#include "runtime/state/agreed_state.h"
#include "runtime/state/state_handle.h"
#include "runtime/status/node_status.h"
#include "runtime/train/checkpoint_cycle.h"
#include "runtime/train/kept_residual.h"
#include "runtime/train/live_scores.h"
#include "runtime/train/local_interval.h"
#include "runtime/train/local_model.h"
#include "runtime/train/measurements.h"
#include "runtime/train/model_health.h"
#include "runtime/train/round_report.h"
#include "runtime/train/round_rows.h"
#include "runtime/train/run_clock.h"
#include "runtime/train/snapshot_slot.h"
#include "runtime/train/state_copy.h"
#include "runtime/train/state_donor.h"
#include "runtime/train/stream_watch.h"
#include "runtime/train/view.h"
#include "runtime/train/view_entry.h"
#include "sync/membership/membership.h"
#include "sync/policy/learning_rate.h"
#include "sync/residual/residual.h"
#include "sync/round/session.h"

namespace rivulet::runtime {

struct WorkerConfig {
  sync::SessionConfig session;
  devices::OptimizerConfig optimizer;
  /// Partitions claimed by this device: read until a view assigns others.
  std::vector<PartitionId> partitions;
  StopAfter stop_after;
  bool dry_run = false;
  bool reform = true;  ///< sync.on_peer_loss is not "exit"
  Duration peer_deadline = std::chrono::seconds(5);
  Duration checkpoint_interval = std::chrono::seconds(30);
  StateOwner owner;                ///< owner named in images of the state
  std::string group;               ///< hash of the group's configuration, for the decision log
  bool stop_on_nonfinite = false;  ///< train.on_nonfinite = "stop"
  std::uint32_t digest_every = 1;  ///< rounds between digests
  bool classification = true;      ///< the model has an accuracy
  GuessWatch::Targets targets = GuessWatch::Targets::classes;
  std::uint64_t prequential_window = 1000;
  std::size_t classes = 0;               ///< number of labels; 0 for numeric targets
  std::uint64_t injection_seed = 1;      ///< selects the injected rows
  std::uint64_t model_seed = 1;          ///< seed of the job's initial model
  std::vector<float> usual_features;     ///< sync::RowFormat
  bool features_may_miss = false;        ///< same
  std::vector<std::string> features;     ///< names of normalized features
  std::vector<std::string> class_names;  ///< up to one more than ScoreWindow::classes_counted
  double speed_hint = 1;                 ///< relative to other devices, in any unit
  double age_at_start_s = 0;             ///< age of the process when this object was made, for first_step_s
};

/// How the worker ended.
struct Ending {
  std::optional<Error> error;  ///< nullopt if stopped by request or with the whole group
  bool leaver_lost = false;    ///< the error is a peer that left on purpose
};

/// Trains and synchronizes: batch -> gradient -> agreed update. Owns the consumer end of the buffer and one
/// View at a time. A state machine of phases; step() returns instead of waiting. The first error of a view
/// destroys it, returns the unfinished round's rows to the buffer, and leaves state and gradient unchanged.
///
///   entering -> collecting -> synchronizing -> [paying] -> collecting ...
///               local steps   (local steps, if they may overlap)
///                                                      +-> draining -> ended
///                                                      +-> draining -> going_back -> entering
///
/// In a round it calls RoundRows (rows), LocalModel (gradient), SyncSession (synchronization), make_step
/// (state), CheckpointCycle and RoundReport; between views ViewEntry.
class Worker final : public Agent {
 public:
  struct Parts {
    const Clock& clock;
    Wake& wake;    ///< wake of this agent
    Wake& ingest;  ///< notified when slots are free
    buffer::RowBuffer& rows;
    buffer::Ledger& ledger;
    CommittableOffsets& commits;
    AssignmentSlot& assignments;
    const StreamGauge& stream;
    devices::Device& device;
    devices::Trainer& trainer;
    StateHandle& state;
    sync::membership::Membership& membership;
    const sync::Connect& connect;
    const sync::Connect* connect_copy;  ///< connects this device to the donor of a copy; null: no copies
    StateDonor* donor;                  ///< null: no copies
    sync::SyncCatalog catalog;
    SnapshotSlot& snapshots;
    Checkpointer* checkpoints;  ///< null if nothing is saved
    DecisionLog& decisions;
    NodeStatus& status;
    MetricsSink& metrics;
    Logger& log;
    const StopRequest& stop;
  };
  /// Allocates batch, contribution and scratch on the device. Errors: unavailable (memory).
  static Result<std::unique_ptr<Worker>> create(const WorkerConfig& config, const Parts& parts);
  ~Worker() override;

  /// Before the first step: restores the private part saved with the state that this process starts from. The
  /// part is used only if the first view starts from that state. Errors: unavailable (memory).
  Status begin_with(const PrivatePart& part);

  [[nodiscard]] std::string_view name() const noexcept override { return "train"; }
  Turn step() override;
  [[nodiscard]] bool ended() const noexcept { return phase_ == Phase::ended; }
  [[nodiscard]] const Ending& ending() const noexcept { return ending_; }
  /// True if this process has been in a view.
  [[nodiscard]] bool entered_group() const noexcept { return clock_.entered(); }
  /// Returns the number of rows that the group has trained since this process entered it.
  [[nodiscard]] std::uint64_t rows_since_entry() const noexcept {
    return clock_.rows_since_entry(*parts_.state);
  }
  [[nodiscard]] const TimeToAccuracy& time_to_accuracy() const noexcept { return report_.time_to_accuracy(); }

 private:
  enum class Phase : std::uint8_t {
    entering,
    collecting,
    synchronizing,
    paying,
    draining,
    going_back,
    ended
  };
  static constexpr Duration peer_step = std::chrono::milliseconds(20);

  /// Memory allocated by create().
  struct Memory {
    std::unique_ptr<LocalIntervals> intervals;
    std::unique_ptr<RoundRows> rows;
    std::unique_ptr<LocalModel> model;
    std::unique_ptr<devices::Memory> agreed;
    GradientView agreed_scratch;  ///< view of `agreed`: [P + B] on the host
  };
  Worker(const WorkerConfig& config, const Parts& parts, Memory memory);
  static Result<Memory> allocate(const WorkerConfig& config, const Parts& parts);
  [[nodiscard]] CheckpointCycle::Parts checkpoint_parts() const;
  [[nodiscard]] RoundReport::Parts report_parts() const;
  [[nodiscard]] StreamWatch::Parts stream_parts() const;
  [[nodiscard]] LiveScores::Parts score_parts() const;
  std::unique_ptr<StateCopy> make_copy();
  [[nodiscard]] ViewEntry::Parts entry_parts();
  [[nodiscard]] RoundRows& rows() const noexcept { return *memory_.rows; }
  [[nodiscard]] LocalModel& model() const noexcept { return *memory_.model; }

  // worker.cpp: the phases of a round
  Turn collect();
  Turn compute_and_enter();
  Turn synchronize();
  Turn pay();
  Turn after_round(bool went_on);
  bool may_enter(TimePoint now);
  Status carry_out(const sync::policy::Decision& decision);
  Result<bool> apply_agreed();
  Status fold_offsets();
  void pass_on(sync::policy::Mode mode, const GradientView& sum);
  void release(Fate fate);
  void keep(Fate fate);
  Turn wait_for_peers();
  Turn again() { return {.work = 1}; }
  Turn later(Duration d) { return {.wake_at = parts_.clock.now() + d}; }

  // worker_local.cpp: local steps, between and during synchronizations
  Turn step_locally();
  Turn step_when_due(TimePoint now);
  std::optional<Turn> step_ahead();
  Turn make_local_step();
  [[nodiscard]] bool steps_locally() const;
  [[nodiscard]] bool contributes_delta() const;
  [[nodiscard]] bool must_synchronize(TimePoint now) const;
  [[nodiscard]] bool overlaps() const;
  void depart();
  void undo_local_steps();

  // worker_values.cpp: rejected contributions, and counters of rows
  Status refuse_nonfinite();
  Status count_refused(std::size_t rows);
  Status check_delta();
  Status measure_state();
  void credit();

  // worker_injection.cpp: injected rows
  void inject_rows();
  void offer_rows();
  void send_rows();
  Status receive_rows();
  void learn_of_streams();

  // worker_facts.cpp: the facts sent when entering a round
  sync::Facts my_facts(TimePoint now);
  void add_local_steps(sync::Facts& facts);
  sync::FactsSection my_section();
  Status measure(sync::Facts& facts);
  sync::Gains my_gains(std::uint32_t rows);
  Status prepare_contribution();
  Status refresh_digest();
  [[nodiscard]] bool shows_digest() const;

  // worker_rollback.cpp: rolling back after divergence
  struct GoingBack {
    Stamp to;
    std::uint64_t view = 0;  ///< view that was left
    TimePoint until;         ///< time limit for reading the file
    std::vector<sync::policy::ControllerMemory> memory;
    bool reloads = false;  ///< the state is damaged, not the model: nothing changes but the state
  };
  Turn retreat();
  Turn reload_committed(const Error& error);
  Turn roll_back();
  Result<std::optional<AgreedState>> rollback_target();
  Status remember_retreat();

  // worker_view.cpp: entering and leaving views
  Turn enter();
  Turn begin_rounds();
  void resolve_residual();
  Status begin_lineage();
  void show_claims();
  bool watch_membership(TimePoint now);
  [[nodiscard]] bool end_requested() const;
  [[nodiscard]] bool hurries() const;
  Duration leaving_for(TimePoint now);
  Turn drain();
  void note_left_residual();
  void put_batch_back();
  [[nodiscard]] bool regroups(TimePoint now) const;
  void note_world(std::uint32_t world);
  [[nodiscard]] bool last_state_may_be_committed() const;
  Turn lost(Error error, bool left_out = false);
  Turn form_again(ViewEnd reason, const std::string& why, const sync::membership::Departure& members = {});
  Turn leave_alone();
  Turn end(std::optional<Error> error, bool leaver_lost = false);

  // constant
  const WorkerConfig config_;
  const Parts parts_;
  const Memory memory_;

  // train thread
  Phase phase_ = Phase::entering;
  RunClock clock_;
  KeptResidual residual_;
  CheckpointCycle checkpoints_;
  RoundReport report_;
  std::unique_ptr<StateCopy> copy_;  ///< null without a donor
  ViewEntry entry_;
  std::unique_ptr<View> view_;
  /// The current round.
  struct RoundNow {
    RoundTimes times;
    Digest digest;                     ///< digest of the agreed state, in a digest round
    bool delta_refused = false;        ///< this device contributes 0 rows
    sync::policy::LocalStepRate rate;  ///< pace of local steps until the next round ends
  };
  RoundNow round_;
  RoundReport::Credit credited_;  ///< rows of this device in the agreed state that are counted so far
  ModelHealth health_;
  StreamWatch stream_;
  LiveScores scores_;
  std::optional<GoingBack> going_back_;
  Measurements measurements_;
  InjectedRows injected_rows_;
  /// The control topic, and its requests to this device.
  struct Control {
    std::string problem;  ///< last problem with the topic
    TimePoint next_look{};
    std::optional<TimePoint> leave_requested;
    TimePoint view_since{};
    std::uint32_t world = 0;               ///< of the last view
    bool regrouped = false;                ///< that view ended so that devices could join
    Duration regroup_pause{};              ///< grows while they fail to
    std::optional<TimePoint> reloaded_at;  ///< last time that states differed without a majority
  };
  Control control_;
  Ending ending_;
};

}  // namespace rivulet::runtime
