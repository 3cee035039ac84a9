#include "sync/published/gain.h"

#include <algorithm>

#include "sync/policy/coherence.h"
#include "sync/policy/sync_cost.h"

namespace rivulet::sync::policy {
namespace {

double measured(const Inputs& inputs, std::size_t rank, std::size_t place) {
  return std::max(0.0, finite(inputs.table.facts[rank].measurements[inputs.measured + place]));
}

/// Share of the squared norm.
double share_of(const Inputs& inputs, std::size_t rank, double keep) {
  std::size_t i = 0;
  while (i + 1 < gain_keeps.size() && gain_keeps.at(i + 1) >= keep) ++i;
  const double above = measured(inputs, rank, i);
  if (i + 1 == gain_keeps.size() || gain_keeps.at(i) <= keep) return above;
  const double part = (keep - gain_keeps.at(i + 1)) / (gain_keeps.at(i) - gain_keeps.at(i + 1));
  const double below = measured(inputs, rank, i + 1);
  return below + part * (above - below);
}

}  // namespace

std::optional<std::size_t> place_of_gains(const Controllers& controllers) {
  std::size_t place = 0;
  for (const auto* controller : controllers)
    for (const auto& field : controller->fact_fields) {
      if (field.name == gain_fields[0].name) return place;
      place += field.count;
    }
  return std::nullopt;
}

double gain_of(const Inputs& inputs, std::size_t rank, double keep, GainKind kind) {
  const double share = share_of(inputs, rank, keep);
  if (kind == GainKind::squared) return share;
  const double whole = measured(inputs, rank, gain_keeps.size());
  const double own = measured(inputs, rank, gain_keeps.size() + 1);
  return own > 0 ? finite(std::sqrt(share) * whole / own) : 0;
}

double mean_gain(const Inputs& inputs, double keep, GainKind kind) {
  double sum = 0;
  double devices = 0;
  for (std::size_t rank = 0; rank < inputs.table.size(); ++rank) {
    if (inputs.table.facts[rank].rows == 0) continue;
    sum += gain_of(inputs, rank, keep, kind);
    ++devices;
  }
  return devices > 0 ? sum / devices : 0;
}

bool is_exchanged(const Inputs& inputs, const RoundPlan& plan) {
  if (plan.now.mode != Mode::gradients && plan.now.mode != Mode::delta) return false;
  return step_rows(inputs) > 0;
}

double step_rows(const Inputs& inputs, std::size_t rank) {
  const FactsTable& table = inputs.table;
  const Facts& f = table.facts[rank];
  const std::uint32_t steps = rank < table.sections.size() ? steps_behind(f, table.sections[rank]) : 1;
  return static_cast<double>(f.rows) / steps;
}

double step_rows(const Inputs& inputs) {
  double sum = 0;
  double devices = 0;
  for (std::size_t rank = 0; rank < inputs.table.size(); ++rank) {
    sum += step_rows(inputs, rank);
    devices += inputs.table.facts[rank].rows > 0 ? 1 : 0;
  }
  return devices > 0 ? sum / devices : 0;
}

GainKind gain_kind(std::string_view text) {
  return text == "unsquared" ? GainKind::unsquared : GainKind::squared;
}

void gate(const Inputs& inputs, double keep, RoundPlan& plan) {
  const std::string_view compressor = compressor_for(keep);
  plan.now.way = way_of(inputs.config, inputs.table.size(), compressor, keep);
  compress_with(inputs.config, compressor, keep, plan.next);
  plan.next.gated = true;
}

std::string percent(double share) {
  const long tenths = std::lround(std::clamp(finite(share), 0.0, 1e6) * 1000);
  if (tenths >= 100 || tenths % 10 == 0) return std::to_string((tenths + 5) / 10) + " %";
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

}  // namespace rivulet::sync::policy
