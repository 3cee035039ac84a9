#include "runtime/train/measurements.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace rivulet::runtime {
namespace {

/// Returns the position of a measurement in the facts of a view; nullopt if it is not requested.
std::optional<std::size_t> place_of(std::span<const sync::policy::FactField> requested,
                                    std::string_view name) {
  std::size_t place = 0;
  for (const sync::policy::FactField& field : requested) {
    if (field.name == name) return place;
    place += field.count;
  }
  return std::nullopt;
}

}  // namespace

void Measurements::begin(std::vector<sync::policy::FactField> requested) {
  requested_ = std::move(requested);
  requests_sketches_ = place_of(requested_, "delta_sketch") || place_of(requested_, "steps_noise") ||
                       place_of(requested_, "gradient_noise");
  requests_gains_ = place_of(requested_, "energy_shares").has_value();
  requests_norm_ = !requests_gains_ && place_of(requested_, "gradient_norm").has_value();
  requests_labels_ = place_of(requested_, "label_counts").has_value();
  requests_feature_skew_ = place_of(requested_, "feature_skew").has_value();
  labels_ = {};
  copied_bytes_ = 0;
  bytes_sent_ = 0;
  exchange_seconds_ = 0;
}

std::vector<float> Measurements::take(const Entering& now) {
  std::vector<float> all;
  const StepSketches& sketches = now.model.sketches();
  const auto put = [&](double number) { all.push_back(static_cast<float>(number)); };
  for (const sync::policy::FactField& field : requested_) {
    const std::size_t end = all.size() + field.count;
    if (field.name == "record_bytes") put(static_cast<double>(now.record_bytes));
    if (field.name == "local_seconds") put(now.local_seconds);
    if (field.name == "stepping_seconds") put(now.stepping_seconds);
    if (field.name == "sent_bytes") put(static_cast<double>(now.bytes_sent - bytes_sent_));
    if (field.name == "exchange_seconds") put(exchange_seconds_);
    if (field.name == "steps_signal") put(sketches.signal());
    if (field.name == "steps_noise") put(sketches.noise());
    if (field.name == "compute_fixed_seconds") put(fit().fixed());
    if (field.name == "compute_row_seconds") put(fit().each());
    if (field.name == "gradient_signal") put(sketches.gradient_signal());
    if (field.name == "gradient_noise") put(sketches.gradient_noise());
    if (field.name == "norm_change") put(norms_.change());
    if (field.name == "speed_hint") put(speed_hint_);
    if (field.name == "contribution_norm") put(now.gains.contribution_norm);
    if (field.name == "gradient_norm") put(now.gains.gradient_norm);
    if (field.name == "energy_shares") std::ranges::copy(now.gains.shares, std::back_inserter(all));
    if (field.name == "kept_norm") put(now.kept_norm);
    if (field.name == "feature_skew") put(skew_.largest());
    if (field.name == "injected_bytes") put(static_cast<double>(copied_bytes_));
    if (field.name == "label_counts") std::ranges::copy(labels_, std::back_inserter(all));
    if (field.name == "delta_sketch") std::ranges::copy(sketches.delta(), std::back_inserter(all));
    all.resize(end);
    // Replaces values of a diverged model by 0, which means unknown.
    for (std::size_t i = end - field.count; i < end; ++i)
      if (!std::isfinite(all[i])) all[i] = 0;
  }
  bytes_sent_ = now.bytes_sent;
  labels_taken_ = std::exchange(labels_, {});
  copied_bytes_ = 0;
  return all;
}

void Measurements::round_deferred() {
  for (std::size_t i = 0; i < labels_.size(); ++i) labels_[i] += labels_taken_[i];
  labels_taken_ = {};
}

void Measurements::trained(const BatchView& batch, std::size_t own) {
  for (const float target : batch.targets.first(std::min(own, batch.targets.size())))
    if (target >= 0) ++labels_[static_cast<std::size_t>(target) % labels_.size()];
}

void Measurements::stepped(std::size_t rows, double seconds) {
  if (rows > 0 && std::exchange(warm_, true)) fit().add(static_cast<double>(rows), seconds);
}

/// Subtracts the time that this device waited for the last one: it is not part of the exchange.
void Measurements::ended(const sync::FactsTable& table, std::uint32_t rank, double sync_seconds) {
  const auto place = place_of(requested_, "local_seconds");
  if (!place) return;
  double last = 0;
  for (const sync::Facts& f : table.facts) last = std::max(last, double{f.measurements[*place]});
  exchange_seconds_ = std::max(0.0, sync_seconds - (last - table.facts[rank].measurements[*place]));
}

}  // namespace rivulet::runtime
