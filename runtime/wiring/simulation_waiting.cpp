#include "runtime/wiring/simulation_waiting.h"

#include <fmt/format.h>

#include <algorithm>

namespace rivulet::runtime {
namespace {

/// Longer than any timeout of a forming group; a peer's deadline is added.
constexpr double patience_s = 60;

enum class Doing : std::uint8_t { something, forming, idle };

bool is_forming(NodeState state) {
  return state == NodeState::forming || state == NodeState::joining || state == NodeState::cooling_down ||
         state == NodeState::paused;
}

/// Returns the common activity of all live devices; `something` if activities differ or a device works.
Doing doing_of(SimulatedGroup& group) {
  std::optional<NodeState> all;
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (group.killed(i) || group.node(i).worker().ended()) continue;
    const NodeState state = group.node(i).status().state.load();
    if (all && *all != state && !(is_forming(*all) && is_forming(state))) return Doing::something;
    all = state;
  }
  if (all && is_forming(*all)) return Doing::forming;
  return all == NodeState::idle || all == NodeState::waiting ? Doing::idle : Doing::something;
}

bool anybody_forms(SimulatedGroup& group) {
  for (std::size_t i = 0; i < group.size(); ++i)
    if (!group.killed(i) && is_forming(group.node(i).status().state.load())) return true;
  return false;
}

}  // namespace

WaitingWatch::WaitingWatch(const SimulateOptions& options, Duration deadline)
    : patience_s_(patience_s + 4 * to_seconds(deadline)) {
  for (const RateTrace& trace : options.rates) {
    if (trace.empty()) continue;
    last_news_s_ = std::max(last_news_s_, trace.back().first);
    streams_end_ = streams_end_ && trace.back().second == 0;
  }
  streams_end_ = streams_end_ && !options.rates.empty() && options.stop_after.seconds <= 0;
  if (!options.faults.empty()) last_news_s_ = std::max(last_news_s_, options.faults.back().at_s);
}

std::string WaitingWatch::forming_text(SimulatedGroup& group) const {
  for (std::size_t i = 0; i < group.size(); ++i)
    if (!group.killed(i) && !group.node(i).worker().ended())
      return fmt::format(
          "no device has trained since second {:.1f} ({}), and no later script line restarts a device",
          since_s_, group.node(i).status().phrase());
  return {};
}

std::optional<std::string> WaitingWatch::look(SimulatedGroup& group) {
  const double now = group.seconds();
  const Doing doing = doing_of(group);
  const bool waits = doing == Doing::forming || (doing == Doing::idle && streams_end_);
  const std::uint64_t step = group.node(group.witness()).state().stamp.step;
  const bool moves = now <= last_news_s_ || step != step_;
  if (moves) {
    step_ = step;
    step_since_s_ = now;
  }
  if (moves || !waits) since_s_ = now;
  if (anybody_forms(group)) forming_at_s_ = now;
  if (now - step_since_s_ >= 2 * patience_s_ && now - forming_at_s_ < patience_s_ / 2 && !waits)
    return fmt::format(
        "since second {:.1f} the group has formed and dissolved repeatedly without a step: messages take "
        "longer than sync.deadline",
        step_since_s_);
  if (now - since_s_ < patience_s_) return std::nullopt;
  if (doing == Doing::forming) return forming_text(group);
  return fmt::format("every stream is silent from second {:g} on, so --stop-after is never reached",
                     last_news_s_);
}

}  // namespace rivulet::runtime
