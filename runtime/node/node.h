#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "buffer/ledger.h"
#include "buffer/row_buffer.h"
#include "devices/device.h"
#include "devices/normalizer.h"
#include "devices/trainer.h"
#include "runtime/checkpoint/checkpointer.h"
#include "runtime/checkpoint/committable_offsets.h"
#include "runtime/config/config.h"
#include "runtime/decisions/decision_log.h"
#include "runtime/ingest/ingest.h"
#include "runtime/node/catalog.h"
#include "runtime/node/run.h"
#include "runtime/process/log.h"
#include "runtime/state/agreed_state.h"
#include "runtime/status/node_status.h"
#include "runtime/train/snapshot_slot.h"
#include "runtime/train/worker.h"
#include "stream/decoder.h"
#include "stream/source.h"
#include "sync/membership/membership.h"
#include "sync/membership/shared_fold.h"

namespace rivulet::runtime {

/// The thread that gives copies of the state to joining devices, and the connections of both ends of a copy.
struct CopyDependencies {
  const Clock& clock;
  Wake& wake;
  sync::Connect give;                         ///< for this thread
  sync::Connect take;                         ///< for the train thread
  std::size_t above = std::size_t{1} << 20U;  ///< devices copy larger states, in bytes, before they join
};

/// The parts of a node that a wiring chooses (docs/ARCHITECTURE.md lists them). Everything else is built in
/// the same way in every wiring.
struct NodeDependencies {
  const Clock& ingest_clock;
  const Clock& worker_clock;
  Wake& ingest_wake;
  Wake& worker_wake;
  std::unique_ptr<stream::RecordSource> source;
  std::unique_ptr<devices::Device> device;
  devices::Trainer* lent_trainer = nullptr;  ///< shared by nodes of one thread; null if the node has its own
  std::unique_ptr<OrderedLog> log;
  sync::Connect connect;
  MetricsSink& metrics;
  Logger& logger;
  std::unique_ptr<DecisionLog> decisions;
  const StopRequest& stop;
  Duration poll_wait{};  ///< maximum wait of the source inside Ingest's step
  std::uint64_t nonce_seed = 0;
  double age_at_start_s = 0;
  Wake* checkpoint_wake = nullptr;  ///< null if there are no checkpoints
  std::string checkpoints = {};     ///< directory
  /// Only groups that change their size use it. Without it, devices receive every state inside a view.
  std::optional<CopyDependencies> copies = {};
  /// Owner of the states if synthetic rows replace the job's own rows.
  std::optional<StateOwner> owner = {};
  const FileOperations& files = system_files();
  sync::membership::Rules rules = {};                   ///< protocol rules; tests may disable some
  sync::membership::SharedFold* shared_fold = nullptr;  ///< shared by nodes of one thread that read one log
  bool own_log = false;    ///< the log starts with this process: view numbers restart at 1
  bool snapshots = false;  ///< the model is evaluated during training
};

/// The objects of one device, in order of construction. Owns everything that its agents refer to.
class Node {
 public:
  /// Errors: invalid_config (decoder, model), unavailable (memory, LibTorch).
  static Result<std::unique_ptr<Node>> build(const LoadedConfig& loaded, const RunOptions& options,
                                             const Catalog& catalog, NodeDependencies outside);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Ingest& ingest() { return *ingest_; }
  Worker& worker() { return *worker_; }
  NodeStatus& status() { return status_; }
  [[nodiscard]] const AgreedState& state() const { return **state_; }
  /// For tests: mutable access that bypasses the worker, to imitate failing memory.
  AgreedState& own_state() { return *state_->own(*outside_.device).value(); }
  devices::Trainer& trainer() { return *trainer_; }
  devices::Device& device() { return *outside_.device; }
  buffer::RowBuffer& rows() { return *rows_; }
  [[nodiscard]] const sync::membership::Membership& membership() const { return *membership_; }
  SnapshotSlot& snapshots() { return *snapshots_; }
  stream::RecordSource& source() { return *outside_.source; }
  CommittableOffsets& commits() { return commits_; }
  /// Owner of the states.
  [[nodiscard]] const StateOwner& owner() const { return owner_; }
  Checkpointer* checkpoints() { return checkpoints_.get(); }
  /// Null in a group of fixed size, and without CopyDependencies.
  StateDonor* donor() { return donor_.get(); }

  /// Returns role and dynamic type of every object, for a test that both wirings build the same objects.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> object_types() const;

 private:
  explicit Node(NodeDependencies outside) : outside_(std::move(outside)), status_(outside_.metrics) {}
  Status make(const LoadedConfig& loaded, const RunOptions& options, const Catalog& catalog);
  Status load_checkpoint(const Config& config);
  [[nodiscard]] Status refuse_misfit(const CheckpointFolder& folder, const Expected& expected) const;
  void log_repeated_work(const CheckpointFolder::Found& found);
  Status make_checkpointer(const Config& config);
  void make_donor(const Config& config);
  Status make_learner(const Config& config, const Catalog& catalog);
  Status make_agents(const LoadedConfig& loaded, const RunOptions& options, const Catalog& catalog);

  NodeDependencies outside_;
  NodeStatus status_;
  std::unique_ptr<stream::Decoder> decoder_;
  StateOwner owner_;
  std::unique_ptr<devices::Trainer> own_trainer_;
  devices::Trainer* trainer_ = nullptr;
  std::unique_ptr<StateHandle> state_;
  std::string unusable_;                     ///< see MembershipConfig
  std::optional<Stamp> rollback_to_;         ///< see MembershipConfig
  std::optional<PrivatePart> private_part_;  ///< until passed to the worker
  std::unique_ptr<buffer::RowBuffer> rows_;
  buffer::Ledger ledger_;
  CommittableOffsets commits_;
  AssignmentSlot assignments_;
  StreamGauge gauge_;
  std::unique_ptr<SnapshotSlot> snapshots_;
  std::unique_ptr<Checkpointer> checkpoints_;
  std::unique_ptr<sync::membership::Membership> membership_;
  std::unique_ptr<StateDonor> donor_;
  std::unique_ptr<Ingest> ingest_;
  std::unique_ptr<Worker> worker_;
};

/// Adapts `config` to synthetic rows, which are raw float32 in the shape of the configured decoder, even if
/// the job's stream is text. Errors: those of build_decoder().
Status expect_synthetic_rows(Config& config, const Catalog& catalog);

/// Returns the needs of the configured model: from its catalog entry, or, for custom model code, from a trial
/// in a separate process. Call before build_trainer() and before threads start. A value above 0 in `stop`
/// cancels the trial. Errors: invalid_config, cancelled.
Result<devices::ModelNeeds> needs_of_model(const Config& config, const Catalog& catalog, const RowShape& rows,
                                           const StopRequest* stop = nullptr);

/// Build the decoder, optimizer and model named by the configuration. Errors: invalid_config (name not in the
/// catalog: lists the available names; configuration rejected by the entry), unavailable (memory, LibTorch).
Result<std::unique_ptr<stream::Decoder>> build_decoder(const Config& config, const Catalog& catalog);
Result<devices::OptimizerConfig> build_optimizer(const Config& config, const Catalog& catalog);
Result<std::unique_ptr<devices::Trainer>> build_trainer(const Config& config, const Catalog& catalog,
                                                        const RowShape& rows, devices::Device& device);

}  // namespace rivulet::runtime
