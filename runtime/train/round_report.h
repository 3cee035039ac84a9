#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "buffer/batch.h"
#include "core/clock.h"
#include "runtime/process/log.h"
#include "runtime/status/ledger_metrics.h"
#include "runtime/status/node_status.h"
#include "runtime/train/local_interval.h"
#include "runtime/train/make_step.h"
#include "runtime/train/progress.h"
#include "runtime/train/sync_metrics.h"
#include "runtime/train/train_metrics.h"
#include "runtime/train/view.h"

namespace rivulet::runtime {

/// Fate of the rows of a batch.
enum class Fate : std::uint8_t { trained, dropped, dry_run };

/// Times within a round.
struct RoundTimes {
  TimePoint last_ended{};  ///< end of the previous round
  TimePoint entered{};     ///< when this device sent its facts
  double wait_seconds = 0;
  double sync_seconds = 0;   ///< synchronization time of the last round that ended
  double ahead_seconds = 0;  ///< part of sync_seconds spent on local steps of the next round
  bool early = false;        ///< this device requested early synchronization
  TimePoint due{};           ///< from this time on, silent peers count as making no progress
  bool peers_due = true;     ///< true from that time on
};

/// Reports rounds to users: metrics, status page, accuracy. Owner: the train thread.
class RoundReport {
 public:
  struct Parts {
    const Clock& clock;
    NodeStatus& status;
    MetricsSink& metrics;
    std::span<const PartitionId> partitions;  ///< partitions of this device
    Logger& log;
    const std::vector<std::string>& topics;
    bool classification = true;  ///< the model has an accuracy
    std::uint64_t prequential_window = 1000;
    std::size_t classes = 0;    ///< number of labels; 0 for numeric targets
    double age_at_start_s = 0;  ///< age of the process when this object was made
    LocalIntervals& intervals;
  };
  explicit RoundReport(const Parts& parts);

  [[nodiscard]] TrainMetrics& metrics() noexcept { return metrics_; }
  void enter_view(const sync::ViewSpec& spec, const sync::policy::Controllers& controllers);
  [[nodiscard]] const TimeToAccuracy& time_to_accuracy() const noexcept { return time_to_accuracy_; }

  /// Call when the `own` rows of the batch are finished. credit() counts them once their fate is part of the
  /// agreed state.
  void all_published(Fate fate, std::size_t own, const BatchView& batch);
  /// Call when the agreed state contains more of this device's rows, trained or dropped. Rows are counted
  /// only here, so that pages, metrics and ledger cannot differ.
  struct Credit {
    std::uint64_t trained = 0;
    std::uint64_t nonfinite = 0;  ///< dropped as not finite
    bool operator==(const Credit&) const = default;
  };
  void credit(const Credit& rows, std::uint64_t step);
  /// Returns the number of rows dropped as not finite in this run.
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }
  void stepped(const StepMade& made, sync::policy::Mode mode);
  void local_step(const devices::ApplyReport& applied, double compute_seconds, std::size_t rows);
  /// Call when the round has ended. Sets times.sync_seconds.
  struct Ended {
    const View& view;
    const AgreedState& state;
    double compute_seconds = 0;  ///< compute time of the batch; 0 for local steps, counted as they were made
    double seconds_training = 0;
    std::size_t rows_waiting = 0;
  };
  void ended(const Ended& round, RoundTimes& times);
  /// Publishes the norm of the residual and the number of bytes sent in slots.
  void kept(const sync::Residual& residual);

 private:
  void took_batch(std::size_t rows);
  void drop(std::uint64_t rows, std::uint64_t step);
  void count_mode(sync::policy::Mode mode);
  void count_speculation(sync::SpeculationOutcome outcome);
  void measure_state(const sync::Round& round, double seconds_training);
  void measure_own(const sync::Facts& mine);
  void measure_guess(std::size_t own, const BatchView& batch);
  void warn_of_nonfinite(std::uint64_t rows, std::uint64_t step);
  void observe_delay(const BatchView& batch);

  const Parts parts_;
  const TimePoint created_;
  TrainMetrics metrics_;
  SyncMetrics sync_metrics_;
  LedgerMetrics ledger_;
  Prequential prequential_;
  Prequential own_;      ///< loss of this device's own rows
  Prequential squares_;  ///< squared numeric targets of this device's rows
  TimeToAccuracy time_to_accuracy_;
  TimePoint warn_again_at_{};
  std::optional<TimePoint> last_step_;
  bool view_changed_ = false;  ///< since that step
  std::uint64_t dropped_ = 0;
};

}  // namespace rivulet::runtime
