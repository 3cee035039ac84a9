#include "runtime/train/stream_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/printable.h"

namespace rivulet::runtime {
namespace {

/// Minimum number of rows before a rise is reported: early in training the error rate varies too much.
constexpr std::uint64_t beginning_rows = 500;
/// A smaller relative rise of the errors is detected but irrelevant.
constexpr double least_rise = 0.25;
/// How long a rise of the loss is shown.
constexpr Duration shown_for = std::chrono::minutes(10);
/// Minimum interval of updates: the description of a shifted feature changes with every row.
constexpr Duration shown_again_after = std::chrono::seconds(5);

/// Wrong predictions in the first `own` rows, or their share of the batch's if rows have no predictions.
std::uint64_t wrong_in(const devices::StepReport& report, const BatchView& batch, std::size_t own) {
  if (report.answers.size() != batch.rows) return own - std::min<std::uint64_t>(own, report.correct);
  std::uint64_t wrong = 0;
  for (std::size_t row = 0; row < own; ++row) wrong += report.answers[row] != batch.targets[row] ? 1 : 0;
  return wrong;
}

}  // namespace

StreamWatch::StreamWatch(const Parts& parts)
    : parts_(parts),
      drift_(std::min(parts.features.size(), features_watched)),
      changes_(parts.metrics.counter("stream_changes_total")) {
  for (std::size_t i = 0; i < drift_.features(); ++i) {
    const std::string name = printable(parts.features[i]);
    features_.push_back({name, &parts.metrics.counter("feature_outliers_total", {{"feature", name}}),
                         &parts.metrics.gauge("feature_distance_ratio", {{"feature", name}})});
    features_.back().distance->set(0);
  }
}

void StreamWatch::computed(const devices::StepReport& report, const BatchView& batch, std::size_t own) {
  own = std::min(own, batch.rows);
  if (own == 0) return;
  count_outliers(report, batch, own);
  const bool looked = look_at_features(batch, own);
  const bool rose = look_at_loss(report, batch, own);
  rows_ += own;
  if (looked || rose) show();
}

void StreamWatch::pass() {
  if (!rise_.empty() && parts_.clock.now() >= rose_at_ + shown_for) show();
}

/// In a batch with injected rows, only counts rows that are outliers in this stream.
void StreamWatch::count_outliers(const devices::StepReport& report, const BatchView& batch, std::size_t own) {
  const std::size_t columns = batch.features.size() / batch.rows;
  for (std::size_t i = 0; i < std::min(features_.size(), report.beyond.size()); ++i) {
    if (report.beyond[i] == 0) continue;
    Feature& feature = features_[i];
    const auto [value, far] = drift_.farthest(i, batch.features.data(), own, columns);
    const std::uint32_t count =
        own < batch.rows && drift_.begun(i) ? std::min(report.beyond[i], far) : report.beyond[i];
    if (count == 0) continue;
    feature.outliers->add(count);
    if (!drift_.begun(i)) continue;  // this process has not measured the usual values yet
    if (std::exchange(feature.named, true)) continue;
    parts_.log.write(
        Level::warn, "an outlier was clipped; only the first per feature is logged",
        {{"feature", feature.name}, {"value", fmt::format("{:.6g}", value)}, {"usual", drift_.usual(i)}});
  }
}

bool StreamWatch::look_at_features(const BatchView& batch, std::size_t own) {
  if (features_.empty() || !drift_.add(batch.features.data(), own, batch.features.size() / batch.rows))
    return false;
  for (std::size_t i = 0; i < features_.size(); ++i) {
    Feature& feature = features_[i];
    const bool had_moved = std::exchange(feature.moved, drift_.moved(i));
    const bool was_stuck = std::exchange(feature.stuck, drift_.stuck(i));
    feature.distance->set(drift_.distance(i));
    if (feature.stuck && !was_stuck) {
      changes_.add(1);
      parts_.log.write(Level::warn, "a feature is constant", {{"feature", feature.name}});
      parts_.status.mark(fmt::format("feature {} is constant", feature.name));
    }
    if (!feature.moved || had_moved) continue;
    changes_.add(1);
    parts_.log.write(Level::warn, "a feature has moved",
                     {{"feature", feature.name}, {"values", drift_.describe(i)}});
    parts_.status.mark(fmt::format("feature {} has moved: {}", feature.name, drift_.describe(i)));
  }
  return true;
}

/// ADWIN over errors. Classification: right or wrong, by row. Regression: the squared error of each batch,
/// mapped to [0, 1). Only a rise is an alarm.
bool StreamWatch::look_at_loss(const devices::StepReport& report, const BatchView& batch, std::size_t own) {
  std::optional<Adwin::Sides> rise;
  const auto add = [&](double error) {
    if (!errors_.add(error)) return;
    if (errors_.rose())
      rise = errors_.sides();
    else
      usual_error_ = errors_.sides().newer;
  };
  if (parts_.classification) {
    const std::uint64_t wrong = wrong_in(report, batch, own);
    // Spreads wrong rows evenly over the batch: a block of wrong rows at the end of a batch would look like a
    // change of the stream.
    for (std::size_t row = 0; row < own; ++row) add((row + 1) * wrong / own > row * wrong / own ? 1 : 0);
  } else if (report.rows > 0) {
    const double loss = report.loss_sum / static_cast<double>(report.rows);
    add(std::isfinite(loss) ? loss / (1 + loss) : 1);
  }
  const auto usual = rise ? baseline_of(*rise) : std::nullopt;
  if (!usual || rows_ < beginning_rows) return false;
  ++rises_;
  rose_at_ = parts_.clock.now();
  changes_.add(1);
  rise_ = parts_.classification
              ? fmt::format(
                    "the model's error rate on this device's rows is {:.1f} %, {:.1f} % before: "
                    "the stream has changed",
                    100 * rise->newer, 100 * *usual)
              : "the model's loss on this device's rows has risen: the stream has changed";
  parts_.log.write(Level::warn, rise_);
  parts_.status.mark(rise_);
  return true;
}

/// Converts the mapped loss of a regression back to the loss.
double StreamWatch::itself(double error) const {
  return parts_.classification || error >= 1 ? error : error / (1 - error);
}

/// Returns the previous error if the rise is relevant, else nullopt. Small rises add up: the error before the
/// first of them stays the reference.
std::optional<double> StreamWatch::baseline_of(const Adwin::Sides& rise) {
  const double usual = usual_error_ > 0 ? usual_error_ : rise.older;
  const bool matters = itself(rise.newer) >= (1 + least_rise) * itself(usual);
  usual_error_ = matters ? rise.newer : usual;
  return matters ? std::optional(usual) : std::nullopt;
}

void StreamWatch::show() {
  const TimePoint at = parts_.clock.now();
  StreamFindings now;
  std::vector<std::string> moved;
  for (std::size_t i = 0; i < features_.size(); ++i) {
    const Feature& feature = features_[i];
    if (feature.stuck) now.stuck.push_back(feature.name);
    if (!feature.moved) continue;
    moved.push_back(feature.name);
    now.moved.push_back(feature.name + " (" + drift_.describe(i) + ")");
  }
  if (at >= rose_at_ + shown_for) rise_.clear();
  now.loss_rose = rise_;
  const bool same = now.stuck == shown_.stuck && moved == moved_ && now.loss_rose == shown_.loss_rose;
  if (now == shown_ || (same && at < shown_at_ + shown_again_after)) return;
  shown_ = std::move(now);
  moved_ = std::move(moved);
  shown_at_ = at;
  parts_.status.set_stream_findings(shown_);
}

}  // namespace rivulet::runtime
