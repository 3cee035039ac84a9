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

/// How good the model is on this device's own rows, for status and metrics: beside the group's loss and
/// accuracy, which all devices show alike. Rows of a batch that comes again, for its view was lost, count
/// again. Owner: the train thread.
class LiveScores {
 public:
  struct Parts {
    const Clock& clock;
    NodeStatus& status;
    MetricsSink& metrics;
    bool classification = true;
    std::vector<std::string> classes = {};  ///< their names; empty: answers are not looked at by class
    std::uint64_t window = 1000;            ///< rows
  };
  explicit LiveScores(const Parts& parts);

  /// The first `counted` rows of the batch are this device's, and this is what was computed on it. Shown at
  /// once, but at most ten times a second.
  void computed(const devices::StepReport& report, const BatchView& batch, std::size_t counted);
  /// The model is another one: what is known of the last is not shown any more.
  void begin();
  /// What is not shown yet is.
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
