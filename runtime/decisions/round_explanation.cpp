#include "runtime/decisions/round_explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/time.h"
#include "runtime/decisions/exchange_explanation.h"
#include "sync/policy/controller.h"

namespace rivulet::runtime {
namespace {

using sync::policy::Mode;

std::string milliseconds(double seconds) {
  return seconds < 0.01 ? fmt::format("{:.1f} ms", 1000 * seconds) : fmt::format("{:.0f} ms", 1000 * seconds);
}

std::string rows_text(std::uint64_t n) {
  return fmt::format("{} row{}", n, n == 1 ? "" : "s");
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return text;
}

std::vector<std::string> flagged(const ViewRecord& view, const RoundRecord& round, std::uint32_t flag) {
  std::vector<std::string> ids;
  for (std::size_t rank = 0; rank < round.table.size(); ++rank)
    if ((round.table.facts[rank].flags & flag) != 0) ids.push_back(view.members[rank]);
  return ids;
}

std::vector<DevicePart> parts_of(const ViewRecord& view, const RoundRecord* before, const RoundRecord& round,
                                 const RoundRecord* after) {
  std::vector<DevicePart> parts;
  const auto ready = [&](std::size_t rank) { return ready_seconds(round.table, rank); };
  double last = 0;
  for (std::size_t rank = 0; rank < round.table.size(); ++rank) last = std::max(last, ready(rank));
  for (std::size_t rank = 0; rank < view.members.size(); ++rank) {
    const sync::Facts& f = round.table.facts[rank];
    DevicePart& part = parts.emplace_back();
    part.id = view.members[rank];
    part.rows = f.rows;
    // With local steps there is no request: every device uses the rows it has.
    if (before != nullptr && !before->plan.next.local) part.requested = before->plan.next.rows.at(rank);
    part.weight = rank < round.plan.now.weights.size() ? round.plan.now.weights[rank] : 0;
    part.rows_per_s = f.stream_rate;
    part.waiting_rows = f.queue_rows;
    part.wait_s = f.wait_seconds;
    part.compute_s = ready(rank) - f.wait_seconds;
    part.spare_s = last - ready(rank);
    if (after != nullptr) part.sync_s = after->table.facts[rank].sync_seconds;
    part.next_rows = rank < round.plan.next.rows.size() ? round.plan.next.rows[rank] : 0;
  }
  return parts;
}

/// The mode as shown to users; the decision log has its identifier.
std::string words_of(Mode mode) {
  switch (mode) {
    case Mode::gradients: return "gradients averaged";
    case Mode::delta: return "deltas averaged";
    case Mode::defer: return "deferred";
    case Mode::idle: return "idle";
    case Mode::skip: return "dry run";
  }
  return "";
}

std::string outcome(const ViewRecord& view, const RoundRecord& round, std::uint64_t rows) {
  switch (round.plan.now.mode) {
    case Mode::gradients:
      return fmt::format(
          "The gradients of {} were averaged, weighted by rows, and all devices made the same step.",
          rows_text(rows));
    case Mode::delta:
      return fmt::format("The deltas of local steps on {} were averaged, weighted by rows.", rows_text(rows));
    case Mode::defer:
      return fmt::format(
          "No device made a step: {} had fewer rows than assigned. All devices keep their rows.",
          listed(flagged(view, round, sync::flag_incomplete)));
    case Mode::idle: return "No device had rows: nothing was trained or sent.";
    case Mode::skip: return "A dry run: rows were read, but nothing was changed.";
  }
  return "";
}

/// The device that was ready last sets the pace of the round.
std::string waited_for(const RoundExplanation& story) {
  const auto least = std::ranges::min_element(
      story.devices, [](const DevicePart& a, const DevicePart& b) { return a.spare_s < b.spare_s; });
  const auto most = std::ranges::max_element(
      story.devices, [](const DevicePart& a, const DevicePart& b) { return a.spare_s < b.spare_s; });
  if (story.devices.size() == 1) return "";
  if (most->spare_s <= 0) return "All devices were ready at the same time.";
  return fmt::format(
      "{} was ready last, {} after the previous round: {} waiting for rows, {} computing; {} waited longest "
      "for it: {}.",
      least->id, milliseconds(least->wait_s + least->compute_s), milliseconds(least->wait_s),
      milliseconds(least->compute_s), most->id, milliseconds(most->spare_s));
}

/// The device that was ready last waited for no other, so its synchronization time is that of the exchange.
std::string cost(const RoundExplanation& story) {
  double wait = 0;
  double compute = 0;
  std::optional<double> sync;
  for (const auto& d : story.devices) {
    wait = std::max(wait, d.wait_s);
    compute = std::max(compute, d.compute_s);
    if (d.sync_s) sync = std::min(*d.sync_s, sync.value_or(*d.sync_s));
  }
  return fmt::format("Maximum wait for rows: {}; maximum compute time: {}; exchange: {}.", milliseconds(wait),
                     milliseconds(compute),
                     sync ? milliseconds(*sync) : "unknown (the next round is not in the log)");
}

std::string why_so_many(const ViewRecord& view, const RoundRecord& before, std::size_t rank) {
  const std::uint32_t asked = before.plan.next.rows[rank];
  const std::string text = fmt::format("{} was assigned {}", view.members[rank], rows_text(asked));
  const auto* batch = sync::policy::controller_named(sync::policy::Role::batch, view.policy.batch_policy);
  if (batch == nullptr || batch->why_rows == nullptr) return text + ".";
  return text + ": " + batch->why_rows(view.policy, before.table.facts[rank], asked) + ".";
}

std::string short_devices(const RoundExplanation& story, const ViewRecord& view, const RoundRecord& round) {
  std::vector<std::string> less;
  for (const auto& d : story.devices)
    if (d.requested && d.rows < *d.requested)
      less.push_back(fmt::format("{} ({} of {})", d.id, d.rows, *d.requested));
  if (less.empty() || round.plan.now.mode == Mode::defer) return "";
  return fmt::format("Devices with fewer rows than assigned: {}. The maximum wait for rows is {}.",
                     listed(less), milliseconds(to_seconds(view.policy.max_wait)));
}

/// For schedules with local steps.
std::string next_sync(const RoundRecord& round) {
  const auto& next = round.plan.next;
  if (!next.local || round.plan.now.stop) return "";
  const auto* small = sync::policy::compressor_named(next.way.compressor);
  const bool all = small != nullptr && !small->keeps_residual;
  return fmt::format(
      "Each device makes {}, then all synchronize {:.3g} % of the parameters ({}, {}, {} bytes from each).",
      next.local->steps == 1 ? "a local step" : fmt::format("{} local steps", next.local->steps),
      all ? 100.0 : 100 * next.way.keep_ratio, next.way.compressor, next.way.collective,
      next.way.payload_bytes);
}

std::string next_round(const ViewRecord& view, const RoundRecord& round) {
  const auto& plan = round.plan;
  if (plan.now.stop) return "The group stops after this round.";
  std::vector<std::string> who;
  for (std::size_t rank = 0; rank < view.members.size() && rank < plan.next.rows.size(); ++rank)
    who.push_back(fmt::format("{} {}", view.members[rank], plan.next.rows[rank]));
  const std::string when = milliseconds(to_seconds(plan.next.wait));
  if (plan.next.rest)
    return fmt::format("The group pauses until a device has rows, for a maximum of {}.", when);
  if (plan.next.local)
    return fmt::format("Rows of the next local steps: {}; each step starts within {}.", listed(who), when);
  return fmt::format("Rows of the next round: {}; it starts within {}.", listed(who), when);
}

std::vector<std::string> remarks(const ViewRecord& view, const RoundRecord& round) {
  std::vector<std::string> out;
  if (const auto bad = flagged(view, round, sync::flag_nonfinite); !bad.empty())
    out.push_back(fmt::format(
        "The rows of {} were dropped: their loss, gradient or delta was not finite, or had exploded.",
        listed(bad)));
  if (const auto leaving = flagged(view, round, sync::flag_leaving); !leaving.empty())
    out.push_back(fmt::format(
        "Devices that leave after {}: {}.",
        round.plan.next.flush ? "the next round, whose exchange is dense" : "this round", listed(leaving)));
  if (round.plan.now.regroup) out.emplace_back("The view ends after this round, so that devices can join.");
  if (round.plan.now.checkpoint) out.emplace_back("All devices save the state after this round.");
  return out;
}

}  // namespace

RoundExplanation explain_round(const ViewRecord& view, const RoundRecord* before, const RoundRecord& round,
                               const RoundRecord* after) {
  RoundExplanation story;
  story.view = round.view;
  story.round = round.round;
  story.step = round.table.facts.front().step;
  story.mode = words_of(round.plan.now.mode);
  story.policy = view.policy.batch_policy;
  story.why = round.plan.why;
  story.devices = parts_of(view, before, round, after);
  for (const auto& d : story.devices) story.rows += d.rows;
  const auto last = std::ranges::min_element(
      story.devices, [](const DevicePart& a, const DevicePart& b) { return a.spare_s < b.spare_s; });
  // In a round without rows no device waits for another: all pause until one has rows or the time is over.
  const bool waited = round.plan.now.mode != Mode::idle &&
                      std::ranges::any_of(story.devices, [](const DevicePart& d) { return d.spare_s > 0; });
  if (waited) story.last = last->id;
  const auto say = [&](std::string sentence) {
    if (!sentence.empty()) story.sentences.push_back(std::move(sentence));
  };
  // The most important first: what happened, which device was last, what is next.
  say(outcome(view, round, story.rows));
  if (round.plan.now.mode != Mode::idle) say(waited_for(story));
  const std::string next = next_sync(round);
  say(next.empty() ? next_round(view, round) : next);
  if (before == nullptr)
    say("This is the first round of the view: no rows were assigned, each device used the rows it had.");
  else
    for (std::size_t rank = 0; rank < view.members.size(); ++rank) say(why_so_many(view, *before, rank));
  for (auto& sentence : exchange_explanation(view, before, round)) say(std::move(sentence));
  say(short_devices(story, view, round));
  say(cost(story));
  for (auto& sentence : remarks(view, round)) say(std::move(sentence));
  if (!next.empty()) {
    say(next_round(view, round));
    say(fmt::format("Why: {}.", round.plan.why));
  }
  return story;
}

}  // namespace rivulet::runtime
