#include "runtime/train/live_scores.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/printable.h"

namespace rivulet::runtime {
namespace {

constexpr Duration shown_every = std::chrono::milliseconds(100);
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

Gauge* unmeasured(MetricsSink& metrics, std::string_view name, Labels labels) {
  Gauge* gauge = &metrics.gauge(name, labels);
  gauge->set(unknown);
  return gauge;
}

}  // namespace

LiveScores::LiveScores(const Parts& parts) : parts_(parts), window_(parts.window, parts.classes) {
  MetricsSink& metrics = parts_.metrics;
  if (!parts_.classification) {
    absolute_ = unmeasured(metrics, "eval_score", {{"metric", "own_mean_absolute_error"}});
    r2_ = unmeasured(metrics, "eval_score", {{"metric", "own_r2"}});
    return;
  }
  accuracy_ = unmeasured(metrics, "eval_score", {{"metric", "own_prequential_accuracy"}});
  if (parts_.classes.empty()) return;
  largest_ = unmeasured(metrics, "live_largest_class_ratio", {});
  const std::size_t shown = std::min(parts_.classes.size(), OwnScores::classes_shown);
  for (std::size_t c = 0; c < shown; ++c) {
    const std::string name = printable(parts_.classes[c]);
    classes_.push_back({unmeasured(metrics, "live_class_recall", {{"class", name}}),
                        unmeasured(metrics, "live_class_precision", {{"class", name}})});
  }
}

void LiveScores::computed(const devices::StepReport& report, const BatchView& batch, std::size_t counted) {
  window_.add(report, batch, counted);
  shown_ = false;
  if (parts_.clock.now() >= show_again_at_) show();
}

void LiveScores::begin() {
  window_.clear();
  shown_ = false;
  show();
}

void LiveScores::show() {
  if (std::exchange(shown_, true)) return;
  show_again_at_ = parts_.clock.now() + shown_every;
  OwnScores now = window_.scores();
  if (accuracy_ != nullptr) accuracy_->set(now.accuracy.value_or(unknown));
  if (largest_ != nullptr) largest_->set(now.largest_share.value_or(unknown));
  if (absolute_ != nullptr) absolute_->set(now.mean_absolute_error.value_or(unknown));
  if (r2_ != nullptr) r2_->set(now.r2.value_or(unknown));
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    const ClassCounts counts = c < now.classes.size() ? now.classes[c] : ClassCounts{};
    classes_[c].recall->set(counts.recall().value_or(unknown));
    classes_[c].precision->set(counts.precision().value_or(unknown));
  }
  parts_.status.set_own_scores(std::move(now));
}

}  // namespace rivulet::runtime
