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
#include "runtime/train/agreement_metrics.h"
#include "runtime/train/local_interval.h"
#include "runtime/train/make_step.h"
#include "runtime/train/progress.h"
#include "runtime/train/train_metrics.h"
#include "runtime/train/view.h"

namespace rivulet::runtime {

/// What became of the rows of a batch.
enum class Fate : std::uint8_t { trained, dropped, dry_run };

/// When the steps of a round were.
struct RoundTimes {
  TimePoint last_ended{};  ///< the round before
  TimePoint entered{};     ///< its facts left
  double wait_seconds = 0;
  double sync_seconds = 0;   ///< of the last round that ended
  double ahead_seconds = 0;  ///< of that, in which own steps of the next one were made
  bool early = false;        ///< this device has asked the others to come
  TimePoint due{};           ///< from then on the silence of peers counts
  bool peers_due = true;     ///< it does
};

/// What a round was, for people: metrics, status page, accuracy. Owner: the train thread.
class RoundReport {
 public:
  struct Parts {
    const Clock& clock;
    NodeStatus& status;
    MetricsSink& metrics;
    std::span<const PartitionId> partitions;  ///< of this device
    Logger& log;
    const std::vector<std::string>& topics;
    bool classification = true;  ///< there is an accuracy to measure
    std::uint64_t prequential_window = 1000;
    std::size_t classes = 0;    ///< labels that there are; 0: targets are any numbers
    double age_at_start_s = 0;  ///< of the process when this object was made
    LocalIntervals& intervals;
  };
  explicit RoundReport(const Parts& parts);

  [[nodiscard]] TrainMetrics& metrics() noexcept { return metrics_; }
  void enter_view(const sync::ViewSpec& spec, const sync::policy::Controllers& controllers);
  [[nodiscard]] const TimeToAccuracy& time_to_accuracy() const noexcept { return time_to_accuracy_; }

  /// `own` rows of the batch are done with; they are counted by credit(), as what the group makes of them.
  void settled(Fate fate, std::size_t own, const BatchView& batch);
  /// The state has changed, and has more of this device's rows than before: trained and dropped.
  /// The only place where rows are counted, so that pages, metrics and ledger cannot differ.
  struct Credit {
    std::uint64_t trained = 0;
    std::uint64_t nonfinite = 0;  ///< dropped for that
    bool operator==(const Credit&) const = default;
  };
  void credit(const Credit& rows, std::uint64_t step);
  /// Rows dropped as not finite, in this run.
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }
  void stepped(const StepMade& made, sync::policy::Mode mode);
  void own_step(const devices::ApplyReport& applied, double compute_seconds, std::size_t rows);
  /// The round has ended. Fills in times.sync_seconds.
  struct Ended {
    const View& view;
    const AgreedState& state;
    double compute_seconds =
        0;  ///< of its batch; 0 if its steps were own ones, which were counted as they came
    double seconds_training = 0;
    std::size_t rows_waiting = 0;
  };
  void ended(const Ended& round, RoundTimes& times);
  /// ... and this is what was not sent, and what has left in slots.
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
  AgreementMetrics agreement_;
  LedgerMetrics ledger_;
  Prequential prequential_;
  Prequential own_;      ///< loss of this device's own rows
  Prequential squares_;  ///< of its targets, where they are any numbers
  TimeToAccuracy time_to_accuracy_;
  TimePoint warn_again_at_{};
  std::uint64_t dropped_ = 0;
};

}  // namespace rivulet::runtime
