#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/metrics.h"
#include "core/row.h"
#include "devices/trainer.h"
#include "runtime/status/node_status.h"
#include "runtime/train/score_window.h"

namespace rivulet::runtime {

/// Scores of the model on this device's own rows, for status and metrics; the group's loss and accuracy are
/// the same on all devices. Rows of a batch that is repeated because its view was lost count twice. Owner:
/// the train thread.
class LiveScores {
 public:
  struct Parts {
    const Clock& clock;
    NodeStatus& status;
    MetricsSink& metrics;
    bool classification = true;
    std::vector<std::string> classes = {};  ///< class names; empty if there are no scores by class
    std::uint64_t window = 1000;            ///< rows
  };
  explicit LiveScores(const Parts& parts);

  /// Counts the result of a batch whose first `counted` rows are this device's. Publishes the scores
  /// immediately, but no more than ten times a second.
  void computed(const devices::StepReport& report, const BatchView& batch, std::size_t counted);
  /// Call when the model was replaced. Clears the scores.
  void begin();
  /// Publishes pending scores.
  void show();

 private:
  const Parts parts_;
  ScoreWindow window_;
  bool shown_ = true;
  TimePoint show_again_at_{};
  struct OfClass {
    Gauge* recall;
    Gauge* precision;
  };
  std::vector<OfClass> classes_;
  Gauge* largest_ = nullptr;
  Gauge* accuracy_ = nullptr;
  Gauge* absolute_ = nullptr;
  Gauge* r2_ = nullptr;
};

}  // namespace rivulet::runtime
