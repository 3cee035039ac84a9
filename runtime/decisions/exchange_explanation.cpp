#include "runtime/decisions/exchange_explanation.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "sync/policy/sync_cost.h"
#include "sync/published/gain.h"

namespace rivulet::runtime {
namespace {

using sync::policy::GainKind;
using sync::policy::Mode;

/// Keep ratios for which gains are shown, close to the candidates of Flexible.
constexpr std::array shown{0.1, 0.033, 0.01, 0.004, 0.001};

std::string how(const sync::policy::Way& way) {
  std::string what =
      fmt::format("its contribution ({}, keep ratio {:.3g} %)", way.compressor, 100 * way.keep_ratio);
  const sync::CompressorEntry* entry = sync::policy::compressor_named(way.compressor);
  if (entry != nullptr && !entry->keeps_residual) what = "all parameters uncompressed";
  if (entry != nullptr && !entry->entries)
    what = fmt::format("all parameters, encoded by {}", way.compressor);
  return fmt::format("Each device sent {}, summed by {}: a payload of {} bytes.", what, way.collective,
                     way.payload_bytes);
}

std::string gains_of(const sync::policy::Inputs& inputs, GainKind kind) {
  std::string text;
  for (const double keep : shown)
    text += fmt::format("{}{:.3g} %: {:.1f} %", text.empty() ? "" : ", ", 100 * keep,
                        100 * sync::policy::mean_gain(inputs, keep, kind));
  return text;
}

std::optional<std::string> gate_explanation(const ViewRecord& view, const RoundRecord& round) {
  const auto controllers = sync::policy::controllers_of(view.policy, sync::policy::builtin_controllers());
  if (!controllers) return std::nullopt;
  const auto place = sync::policy::place_of_gains(controllers.value());
  const std::size_t wanted = sync::policy::measurements_of(controllers.value());
  if (!place) return std::nullopt;
  for (const sync::Facts& f : round.table.facts)
    if (f.measurements.size() != wanted) return std::nullopt;  // the log lacks the line of its view
  const sync::policy::Schedule entered;
  const sync::policy::Inputs inputs{round.table, view.policy, entered, round.round, *place};
  return fmt::format(
      "Gate {} decided by gains (share of elements: share of the norm). Squared norms: {}; unsquared norms: "
      "{}. Reason: {}.",
      view.policy.compression_policy, gains_of(inputs, GainKind::squared),
      gains_of(inputs, GainKind::unsquared), round.plan.why);
}

}  // namespace

std::vector<std::string> exchange_explanation(const ViewRecord& view, const RoundRecord* before,
                                              const RoundRecord& round) {
  if (round.plan.now.mode != Mode::gradients && round.plan.now.mode != Mode::delta) return {};
  std::vector<std::string> said;
  if (const auto& way = round.plan.now.way) {
    if (auto gate = gate_explanation(view, round)) said.push_back(std::move(*gate));
    said.push_back(how(*way));
  } else if (before != nullptr) {
    said.push_back(how(before->plan.next.way));
  }
  return said;
}

}  // namespace rivulet::runtime
