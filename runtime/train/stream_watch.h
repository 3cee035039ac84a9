#pragma once
#include <cstdint>
#include <optional>
#include <string>
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

/// Each is two series of Prometheus's.
inline constexpr std::size_t features_watched = 64;

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
  /// Now and then, also while no rows come: what was found has its time.
  void pass();
  /// The loss has risen, which the group has not heeded yet: the stream has changed.
  [[nodiscard]] bool tell_change() noexcept {
    told_ = rises_;
    return rises_ > heeded_;
  }
  /// The group has agreed on a step with what was told last. A round that was lost, or holds, heeds nothing.
  void heed_change() noexcept { heeded_ = told_; }

 private:
  struct Feature {
    std::string name;
    Counter* outliers;
    Gauge* distance;
    bool named = false;  ///< its first outlier was logged
    bool moved = false, stuck = false;
  };
  void count_outliers(const devices::StepReport& report, const BatchView& batch, std::size_t own);
  /// What of them is shown may be another now.
  [[nodiscard]] bool look_at_features(const BatchView& batch, std::size_t own);
  /// It has risen.
  [[nodiscard]] bool look_at_loss(const devices::StepReport& report, const BatchView& batch, std::size_t own);
  [[nodiscard]] double itself(double error) const;
  std::optional<double> what_it_rose_from(const Adwin::Sides& rise);
  void show();

  const Parts parts_;
  std::vector<Feature> features_;
  FeatureDrift drift_;  ///< of these
  Counter& changes_;
  Adwin errors_;
  double usual_error_ = 0;  ///< what a rise is measured by
  std::uint64_t rows_ = 0;
  std::uint64_t rises_ = 0, told_ = 0, heeded_ = 0;
  StreamFindings shown_;
  std::vector<std::string> moved_;  ///< names of features in what is shown
  TimePoint shown_at_{};
  std::string rise_;  ///< of the loss, in words; empty: none that is shown
  TimePoint rose_at_{};
};

}  // namespace rivulet::runtime
