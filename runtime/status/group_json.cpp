#include "runtime/status/group_json.h"

#include <nlohmann/json.hpp>
#include <optional>

namespace rivulet::runtime {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);  // an id may contain any bytes
}

Json part_json(const DevicePart& d) {
  Json device{{"id", d.id},
              {"rows", d.rows},
              {"rows_asked", nullptr},
              {"weight", d.weight},
              {"stream_rows_per_s", d.rows_per_s},
              {"rows_waiting", d.waiting_rows},
              {"wait_s", d.wait_s},
              {"compute_s", d.compute_s},
              {"ready_before_last_s", d.spare_s},
              {"sync_s", nullptr},
              {"next_rows", d.next_rows}};
  if (d.requested) device["rows_asked"] = *d.requested;
  if (d.sync_s) device["sync_s"] = *d.sync_s;
  return device;
}

Json json_of(const RoundExplanation& s) {
  auto devices = Json::array();
  for (const auto& d : s.devices) devices.push_back(part_json(d));
  return {{"view", s.view},     {"round", s.round},     {"step", s.step},
          {"rows", s.rows},     {"mode", s.mode},       {"policy", s.policy},
          {"why", s.why},       {"ready_last", s.last}, {"devices", std::move(devices)},
          {"said", s.sentences}};
}

/// Adjacent records may not be adjacent rounds: a round between them may have been omitted.
const RoundRecord* neighbour(const std::vector<RoundRecord>& rounds, std::size_t at, int step) {
  const auto index = static_cast<std::ptrdiff_t>(at) + step;
  if (index < 0 || index >= static_cast<std::ptrdiff_t>(rounds.size())) return nullptr;
  const RoundRecord& other = rounds[static_cast<std::size_t>(index)];
  return other.view == rounds[at].view && other.round == rounds[at].round + static_cast<std::uint64_t>(step)
             ? &other
             : nullptr;
}

}  // namespace

std::string explanation_json(const RoundExplanation& story) {
  return text_of(json_of(story));
}

std::string group_json(const RecentRounds::Shown& shown) {
  Json out{{"view", nullptr},          {"rank", nullptr},
           {"members", Json::array()}, {"left_out", shown.left_out},
           {"rounds", Json::array()},  {"story", nullptr}};
  if (!shown.view) return text_of(out);
  out["view"] = shown.view->number;
  out["rank"] = shown.view->rank;
  for (const auto& id : shown.view->members) out["members"].push_back(id);
  const auto& rounds = shown.rounds;
  for (std::size_t back = 0; back < rounds.size(); ++back) {
    const std::size_t at = rounds.size() - 1 - back;
    const RoundRecord* after = neighbour(rounds, at, 1);
    const RoundExplanation story = explain_round(*shown.view, neighbour(rounds, at, -1), rounds[at], after);
    const bool oldest = at == 0;  // no round has a known successor: omit the synchronization time
    if (out["story"].is_null() && (after != nullptr || oldest)) out["story"] = json_of(story);
    out["rounds"].push_back({{"round", story.round},
                             {"step", story.step},
                             {"rows", story.rows},
                             {"mode", story.mode},
                             {"why", story.why},
                             {"ready_last", story.last}});
  }
  return text_of(out);
}

}  // namespace rivulet::runtime
