#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/metrics.h"
#include "core/row.h"
#include "devices/trainer.h"
#include "runtime/process/log.h"
#include "runtime/status/node_status.h"
#include "runtime/train/adwin.h"
#include "runtime/train/feature_drift.h"

namespace rivulet::runtime {

/// What this device's own stream does, and how good the model is on it: outliers, features that move or stand
/// still, a loss that rises. Each row is looked at before it is trained. Owner: the train thread.
class StreamWatch {
 public:
  struct Parts {
    const Clock& clock;
    NodeStatus& status;
    MetricsSink& metrics;
    Logger& log;
    bool classification = true;
    std::vector<std::string> features = {};  ///< normalized ones by name; empty: none are looked at
  };
  explicit StreamWatch(const Parts& parts);

  /// The first `own` rows of the batch are this device's, and this is what the model made of the batch.
  void computed(const devices::StepReport& report, const BatchView& batch, std::size_t own);
  /// The loss has risen since the last call: the stream has changed.
  [[nodiscard]] bool take_change() noexcept { return std::exchange(changed_, false); }

 private:
  struct Feature {
    std::string name;
    FeatureDrift watch;
    Counter* outliers;
    Gauge* distance;
    bool named = false;  ///< its first outlier was logged
  };
  void count_outliers(const devices::StepReport& report);
  void look_at_features(const BatchView& batch, std::size_t own);
  void look_at_loss(const devices::StepReport& report, std::size_t own);
  void show();

  const Parts parts_;
  std::vector<Feature> features_;
  Counter& changes_;
  Adwin errors_;
  std::uint64_t rows_ = 0;
  bool changed_ = false;
  StreamFindings shown_;
  std::string rise_;  ///< of the loss, in words; empty: none that is shown
  TimePoint rose_at_{};
};

}  // namespace rivulet::runtime
