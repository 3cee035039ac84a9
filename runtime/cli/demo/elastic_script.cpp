#include "runtime/cli/demo/elastic_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "runtime/cli/demo/demo_plan.h"
#include "runtime/cli/text.h"

namespace rivulet::runtime::cli {
namespace {

constexpr double kill_share = 0.2;
constexpr double add_share = 0.4;
constexpr double stop_share = 0.7;
constexpr std::size_t changes_most = 3;
constexpr const char* killed = "killed";
constexpr const char* added = "added";
constexpr const char* stopped = "stopped";

bool trains_now(const DeviceView& device) {
  return device.state == "training" || device.state == "waiting" || device.state == "idle";
}

}  // namespace

ElasticPlan plan_elastic(std::size_t devices, double seconds, std::uint64_t seed) {
  Rng rng = Rng::derive(seed, "elastic");
  ElasticPlan plan;
  plan.added = devices;
  plan.killed = 1 + rng.below(devices - 1);
  plan.stopped = 1 + rng.below(devices - 2);
  if (plan.stopped >= plan.killed) ++plan.stopped;
  plan.kill_at = kill_share * seconds;
  plan.add_at = add_share * seconds;
  plan.stop_at = stop_share * seconds;
  return plan;
}

bool ElasticScript::is_gone(std::size_t device) const {
  return (device == plan_.killed && !changes_.empty()) ||
         (device == plan_.stopped && changes_.size() == changes_most);
}

/// The longest time without a step since the change began; none while the group has not continued.
std::optional<double> ElasticScript::gap_in(const GroupView& view) const {
  std::size_t present = 0;
  for (std::size_t i = 0; i < view.devices.size(); ++i) present += is_gone(i) ? 0 : 1;
  double longest = 0;
  for (std::size_t i = 0; i < view.devices.size(); ++i) {
    if (is_gone(i)) continue;
    const DeviceView& device = view.devices[i];
    if (!trains_now(device) || count_of(device.world) != present) return std::nullopt;
    // A newcomer, or a device restarted since, made no step before the change.
    if (i < gaps_before_.size())
      longest = std::max(longest, device.view_gaps_s.value_or(0) - gaps_before_[i]);
  }
  return longest > 0 ? std::optional(longest) : std::nullopt;
}

std::optional<GroupChange> ElasticScript::measure(const GroupView& view) {
  const auto gap = waits_ ? gap_in(view) : std::nullopt;
  if (!gap) return std::nullopt;
  waits_ = false;
  changes_.back().gap_s = *gap;
  return changes_.back();
}

ElasticScript::Act ElasticScript::next(const GroupView& view) {
  if (waits_) return Act::none;
  switch (changes_.size()) {
    case 0: return view.seconds < plan_.kill_at ? Act::none : begin(Act::kill, plan_.killed, view);
    case 1: return view.seconds < plan_.add_at ? Act::none : begin(Act::add, plan_.added, view);
    case 2: return view.seconds < plan_.stop_at ? Act::none : begin(Act::stop, plan_.stopped, view);
    default: return Act::none;
  }
}

ElasticScript::Act ElasticScript::begin(Act act, std::size_t device, const GroupView& view) {
  gaps_before_.clear();
  for (const DeviceView& each : view.devices) gaps_before_.push_back(each.view_gaps_s.value_or(0));
  const char* what = act == Act::kill ? killed : act == Act::add ? added : stopped;
  changes_.push_back({view.seconds, what, device_name(device), not_measured});
  waits_ = true;
  return act;
}

bool ElasticScript::complete() const noexcept {
  return changes_.size() == changes_most && !waits_;
}

std::string words_of_change(const GroupChange& change) {
  const char* how = change.what == killed  ? "was killed for good"
                    : change.what == added ? "joined"
                                           : "was stopped, and left";
  if (std::isnan(change.gap_s)) return fmt::format("{} {}; the others did not continue", change.device, how);
  return fmt::format("{} {}; the others made no step for {}", change.device, how,
                     human_seconds(change.gap_s));
}

}  // namespace rivulet::runtime::cli
