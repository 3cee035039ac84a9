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

/// Rows that are never trained on, decoded by the job's own decoder, kept in memory.
class HeldOut {
 public:
  /// `path`: see stream/dataset.h; of IDX folders the test split. Errors: io, bad_record, invalid_config.
  static Result<std::unique_ptr<HeldOut>> open(const Config& config, const Catalog& catalog,
                                               const std::string& path, std::size_t rows_max);
  [[nodiscard]] std::size_t rows() const noexcept { return tags_.size(); }
  [[nodiscard]] const RowShape& shape() const noexcept { return shape_; }
  /// Rows that the decoder refused.
  [[nodiscard]] const DropCounts& dropped() const noexcept { return dropped_; }
  /// Rows [begin, begin + n).
  [[nodiscard]] BatchView slice(std::size_t begin, std::size_t n) const;

 private:
  RowShape shape_;
  std::vector<float> features_;
  std::vector<float> targets_;
  std::vector<RowTag> tags_;
  DropCounts dropped_{};
};

/// Accuracy and mean loss of a whole held-out set, in batches of 250.
Result<devices::StepReport> evaluate_all(devices::Trainer& trainer, const devices::ModelState& model,
                                         const HeldOut& data);

/// Measures snapshots of a classifier on held-out rows every so often, each class, too, with a Trainer of its
/// own, a bounded batch per step. A model that cannot be measured is reported once, and nothing is measured
/// from then on: the training does not depend on it.
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
    std::vector<std::string> classes;  ///< a name for each, the model's outputs in order
  };
  explicit Evaluator(const Parts& parts);
  [[nodiscard]] std::string_view name() const noexcept override { return "evaluate"; }
  Turn step() override;
  /// Over what has been measured so far; read after the thread was joined.
  [[nodiscard]] const TimeToAccuracy& time_to_accuracy() const noexcept { return reached_; }

 private:
  /// Rows of a class, and how many of them the model takes for it.
  struct Recall {
    Gauge* gauge = nullptr;  ///< none: no held-out row is of it, or it is one of too many
    std::uint64_t rows = 0;
    std::uint64_t right = 0;
  };
  void count(const std::vector<float>& outputs, std::span<const float> targets);
  void finish();
  Parts parts_;
  std::vector<Recall> classes_;
  std::size_t at_ = 0;
  bool asked_ = false;
  TimePoint next_{};
  TimeToAccuracy reached_;
};

}  // namespace rivulet::runtime
