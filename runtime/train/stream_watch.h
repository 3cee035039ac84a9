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

/// Each feature adds two Prometheus series.
inline constexpr std::size_t features_watched = 64;

/// Watches this device's own stream and the model's results on it: outliers, features that shift or are
/// stuck, a rising loss. Checks each row before it is trained. Owner: the train thread.
class StreamWatch {
 public:
  struct Parts {
    const Clock& clock;
    NodeStatus& status;
    MetricsSink& metrics;
    Logger& log;
    bool classification = true;
    std::vector<std::string> features = {};  ///< names of the normalized features, which are watched
  };
  explicit StreamWatch(const Parts& parts);

  /// Checks the result of a batch whose first `own` rows are this device's.
  void computed(const devices::StepReport& report, const BatchView& batch, std::size_t own);
  /// Expires findings. Call regularly, even without rows.
  void pass();
  /// True if the loss has risen, which means that the stream has changed, and the group has not reacted yet.
  [[nodiscard]] bool report_change() noexcept {
    reported_ = rises_;
    return rises_ > heeded_;
  }
  /// Call when the group has made a step after the last reported change. Lost and deferred rounds do not
  /// count.
  void heed_change() noexcept { heeded_ = reported_; }

 private:
  struct Feature {
    std::string name;
    Counter* outliers;
    Gauge* distance;
    bool named = false;  ///< its first outlier was logged
    bool moved = false, stuck = false;
  };
  void count_outliers(const devices::StepReport& report, const BatchView& batch, std::size_t own);
  /// True if the displayed findings may have changed.
  [[nodiscard]] bool look_at_features(const BatchView& batch, std::size_t own);
  /// True if the loss has risen.
  [[nodiscard]] bool look_at_loss(const devices::StepReport& report, const BatchView& batch, std::size_t own);
  [[nodiscard]] double itself(double error) const;
  std::optional<double> baseline_of(const Adwin::Sides& rise);
  void show();

  const Parts parts_;
  std::vector<Feature> features_;
  FeatureDrift drift_;  ///< drift of the watched features
  Counter& changes_;
  Adwin errors_;
  double usual_error_ = 0;  ///< baseline for detecting a rise
  std::uint64_t rows_ = 0;
  std::uint64_t rises_ = 0, reported_ = 0, heeded_ = 0;
  StreamFindings shown_;
  std::vector<std::string> moved_;  ///< names of the features in the displayed findings
  TimePoint shown_at_{};
  std::string rise_;  ///< message about the risen loss; empty if there is none to show
  TimePoint rose_at_{};
};

}  // namespace rivulet::runtime
