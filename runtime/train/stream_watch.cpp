#include "runtime/train/stream_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/printable.h"

namespace rivulet::runtime {
namespace {

/// Each is two series of Prometheus's.
constexpr std::size_t features_watched = 64;
/// While a model begins, its errors come and go.
constexpr std::uint64_t beginning_rows = 500;
/// So long a rise of the loss is shown.
constexpr Duration shown_for = std::chrono::minutes(10);

}  // namespace

StreamWatch::StreamWatch(const Parts& parts)
    : parts_(parts), changes_(parts.metrics.counter("stream_changes_total")) {
  const std::size_t watched = std::min(parts.features.size(), features_watched);
  for (std::size_t i = 0; i < watched; ++i) {
    const std::string name = printable(parts.features[i]);
    features_.push_back({name,
                         {},
                         &parts.metrics.counter("feature_outliers_total", {{"feature", name}}),
                         &parts.metrics.gauge("feature_distance_ratio", {{"feature", name}})});
    features_.back().distance->set(0);
  }
}

void StreamWatch::computed(const devices::StepReport& report, const BatchView& batch, std::size_t own) {
  own = std::min(own, batch.rows);
  if (own == 0) return;
  count_outliers(report);
  look_at_features(batch, own);
  look_at_loss(report, own);
  rows_ += own;
  show();
}

void StreamWatch::count_outliers(const devices::StepReport& report) {
  for (std::size_t i = 0; i < std::min(features_.size(), report.beyond.size()); ++i) {
    if (report.beyond[i] == 0) continue;
    Feature& feature = features_[i];
    feature.outliers->add(report.beyond[i]);
    if (std::exchange(feature.named, true)) continue;
    parts_.log.write(Level::warn, "a value lies so far out that it is clipped; only the first is named",
                     {{"feature", feature.name}, {"values", feature.watch.describe()}});
  }
}

void StreamWatch::look_at_features(const BatchView& batch, std::size_t own) {
  if (features_.empty()) return;
  const std::size_t columns = batch.features.size() / batch.rows;
  for (std::size_t i = 0; i < features_.size(); ++i) {
    Feature& feature = features_[i];
    const bool had_moved = feature.watch.moved();
    const bool was_stuck = feature.watch.stuck();
    feature.watch.add(batch.features.data() + i, own, columns);
    feature.distance->set(feature.watch.distance());
    if (feature.watch.stuck() && !was_stuck) {
      changes_.add(1);
      parts_.log.write(Level::warn, "a feature stands still", {{"feature", feature.name}});
      parts_.status.mark(fmt::format("feature {} stands still", feature.name));
    }
    if (!feature.watch.moved() || had_moved) continue;
    changes_.add(1);
    parts_.log.write(Level::warn, "a feature has moved",
                     {{"feature", feature.name}, {"values", feature.watch.describe()}});
    parts_.status.mark(fmt::format("feature {} has moved: {}", feature.name, feature.watch.describe()));
  }
}

/// ADWIN over errors: of classes, right or wrong; of numbers, the squares of each batch between 0 and 1. What
/// falls is no alarm.
void StreamWatch::look_at_loss(const devices::StepReport& report, std::size_t own) {
  bool rose = false;
  const double before = errors_.mean();
  const auto add = [&](double error) { rose = (errors_.add(error) && errors_.rose()) || rose; };
  if (parts_.classification) {
    const std::uint64_t wrong = own - std::min<std::uint64_t>(own, report.correct);
    // Spread over the batch: all wrong ones at its end would be a change in each.
    for (std::size_t row = 0; row < own; ++row) add((row + 1) * wrong / own > row * wrong / own ? 1 : 0);
  } else if (report.rows > 0) {
    const double loss = report.loss_sum / static_cast<double>(report.rows);
    add(std::isfinite(loss) ? loss / (1 + loss) : 1);
  }
  if (!rose || rows_ < beginning_rows) return;
  changed_ = true;
  rose_at_ = parts_.clock.now();
  changes_.add(1);
  rise_ = parts_.classification ? fmt::format(
                                      "the model errs on {:.1f} % of this device's rows, before on {:.1f} %: "
                                      "the stream has changed",
                                      100 * errors_.mean(), 100 * before)
                                : "the model's loss on this device's rows has risen: the stream has changed";
  parts_.log.write(Level::warn, rise_);
  parts_.status.mark(rise_);
}

void StreamWatch::show() {
  StreamFindings now;
  for (const Feature& feature : features_) {
    if (feature.watch.stuck()) now.stuck.push_back(feature.name);
    if (feature.watch.moved()) now.moved.push_back(feature.name + " (" + feature.watch.describe() + ")");
  }
  if (parts_.clock.now() >= rose_at_ + shown_for) rise_.clear();
  now.loss_rose = rise_;
  const bool same = now.stuck == shown_.stuck && now.moved.size() == shown_.moved.size() &&
                    now.loss_rose == shown_.loss_rose;
  if (same) return;
  shown_ = std::move(now);
  parts_.status.set_stream_findings(shown_);
}

}  // namespace rivulet::runtime
