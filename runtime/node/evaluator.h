#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/metrics.h"
#include "core/record.h"
#include "devices/device.h"
#include "devices/trainer.h"
#include "runtime/config/config.h"
#include "runtime/node/catalog.h"
#include "runtime/process/agent.h"
#include "runtime/process/log.h"
#include "runtime/status/node_status.h"
#include "runtime/train/progress.h"
#include "runtime/train/snapshot_slot.h"

namespace rivulet::runtime {

/// Held-out rows, decoded by the job's decoder and kept in memory.
class HeldOut {
 public:
  /// `path`: see stream/dataset.h. Uses the test split of an IDX folder. Errors: io, bad_record,
  /// invalid_config.
  static Result<std::unique_ptr<HeldOut>> open(const Config& config, const Catalog& catalog,
                                               const std::string& path, std::size_t rows_max);
  [[nodiscard]] std::size_t rows() const noexcept { return tags_.size(); }
  [[nodiscard]] const RowShape& shape() const noexcept { return shape_; }
  /// Rows rejected by the decoder.
  [[nodiscard]] const DropCounts& dropped() const noexcept { return dropped_; }
  /// Returns rows [begin, begin + n).
  [[nodiscard]] BatchView slice(std::size_t begin, std::size_t n) const;

 private:
  RowShape shape_;
  std::vector<float> features_;
  std::vector<float> targets_;
  std::vector<RowTag> tags_;
  DropCounts dropped_{};
};

/// Returns accuracy and mean loss of a whole held-out set, in batches of 250.
Result<devices::StepReport> evaluate_all(devices::Trainer& trainer, const devices::ModelState& model,
                                         const HeldOut& data);

/// Periodically evaluates snapshots of a classifier on held-out rows, overall and by class. Uses its own
/// Trainer and one bounded batch per step. If a model cannot be evaluated, reports the error once and stops;
/// training continues.
class Evaluator final : public Agent {
 public:
  struct Parts {
    const Clock& clock;
    devices::Trainer& trainer;
    const HeldOut& data;
    SnapshotSlot& snapshots;
    NodeStatus& status;
    MetricsSink& metrics;
    Logger& log;
    Duration every;
    std::vector<std::string> classes;  ///< class names in the order of the model's outputs
  };
  explicit Evaluator(const Parts& parts);
  [[nodiscard]] std::string_view name() const noexcept override { return "evaluate"; }
  Turn step() override;
  /// Covers the measurements so far. Call only after the thread was joined.
  [[nodiscard]] const TimeToAccuracy& time_to_accuracy() const noexcept { return reached_; }

 private:
  /// Rows of a class, and the number of those predicted as that class.
  struct Recall {
    Gauge* gauge = nullptr;  ///< null if no held-out row has this class, or beyond classes_shown
    std::uint64_t rows = 0;
    std::uint64_t right = 0;
  };
  void count(const std::vector<float>& outputs, std::span<const float> targets);
  void finish();
  Parts parts_;
  std::vector<Recall> classes_;
  std::size_t at_ = 0;
  bool requested_ = false;
  TimePoint next_{};
  TimeToAccuracy reached_;
};

}  // namespace rivulet::runtime
