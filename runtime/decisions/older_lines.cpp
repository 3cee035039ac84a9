#include "runtime/decisions/older_lines.h"

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/digest.h"

namespace rivulet::runtime {
namespace {

using nlohmann::json;

constexpr std::uint64_t oldest = 3;
constexpr std::uint64_t one_list_of_fields = 4;
constexpr std::uint64_t own_steps = 5;
constexpr std::uint64_t overlap = 6;

/// The members of an object under other names; what is missing stays missing, which the reader finds.
json renamed(const json& from, std::initializer_list<std::pair<const char*, const char*>> names) {
  json to = json::object();
  if (!from.is_object()) return to;
  for (const auto& [old_name, name] : names)
    if (const auto found = from.find(old_name); found != from.end()) to[name] = *found;
  return to;
}

json list_of(const json& all, json (*each)(const json&)) {
  json out = json::array();
  if (all.is_array())
    for (const json& one : all) out.push_back(each(one));
  return out;
}

json partition_of(const json& from) {
  return from.is_object() ? json::array({from.value("topic", json()), from.value("partition", json())})
                          : json();
}

json interval_of(const json& from) {
  json to = renamed(from, {{"first", "first"},
                           {"next", "next"},
                           {"trained", "rows_trained"},
                           {"dropped", "rows_dropped"},
                           {"shared", "non_final_rows"},
                           {"holes", "holes"}});
  to["partition"] = partition_of(from);
  return to;
}

json run_of(const json& from) {
  json to = renamed(from, {{"from", "from"}, {"to", "to"}, {"rows", "rows"}, {"fate", "fate"}});
  to["partition"] = partition_of(from);
  return to;
}

json facts_of(const json& from) {
  json to = from.is_object() ? from : json::object();
  to.update(renamed(
      from, {{"compute_s", "compute_seconds"}, {"wait_s", "wait_seconds"}, {"sync_s", "sync_seconds"}}));
  if (!to.contains("digest")) to["digest"] = Digest().hex();
  to["interval"] = interval_of(to.value("interval", json()));
  to["measurements"] = json::array();
  to["section"] = {{"more_intervals", list_of(to.value("more_intervals", json()), &interval_of)},
                   {"runs", list_of(to.value("runs", json()), &run_of)}};
  return to;
}

/// One tense into two.
json plan_of(const json& from) {
  json now = renamed(from, {{"mode", "mode"},
                            {"weights", "weights"},
                            {"learning_rate_factor", "learning_rate_factor"},
                            {"checkpoint", "checkpoint"},
                            {"stop", "stop"},
                            {"leaving", "leaving"}});
  if (now.value("mode", json()) == "parameters") now["mode"] = "delta";
  json next = renamed(from, {{"next_rows", "rows"},
                             {"next_wait_ns", "wait_ns"},
                             {"next_whole", "whole"},
                             {"rest", "rest"},
                             {"next_moves", "moves"},
                             {"reduction", "collective"},
                             {"codec", "compressor"},
                             {"keep_ratio", "keep_ratio"},
                             {"payload_max_bytes", "payload_bytes"},
                             {"freeze", "freeze"}});
  // A plan could name a collective beside the usual two.
  const json name = from.is_object() ? from.value("aggregation", json()) : json();
  if (name.is_string() && !name.get_ref<const std::string&>().empty()) next["collective"] = name;
  json to = renamed(from, {{"why", "why"}, {"hash", "hash"}});
  to["now"] = std::move(now);
  to["next"] = std::move(next);
  return to;
}

void add_policy_of_version_5(json& policy) {
  policy["sync_policy"] = "every";
  policy["compression_policy"] = "none";
  policy["tensors"] = json::array();
  policy["buffers"] = 0;
  policy["number_bytes"] = sizeof(float);
  policy["momentum_adds_up"] = false;
  policy["settings"] = json::array();
}

/// Of version 4 the name of a member of the schedule differs, and the group agreed after every batch. Until
/// version 5 nobody stepped while the group agreed, and until version 6 nobody saw copies of others' rows.
void upgrade_schedule(json& plan, std::uint64_t version) {
  if (!plan.is_object()) return;
  json& next = plan["next"];
  if (!next.is_object()) return;
  next["copies"] = json::array();
  next["guests"] = 0;
  next["gated"] = false;
  next["call_above"] = 0;
  next["norm_weight"] = 1;
  if (plan["now"].is_object())
    plan["now"]["way"] = {{"collective", ""}, {"compressor", ""}, {"keep_ratio", 1.0}, {"payload_bytes", 0}};
  if (version == overlap) return;
  next["overlap"] = false;
  if (version == own_steps) return;
  if (next.contains("slot_bytes")) next["payload_bytes"] = next["slot_bytes"];
  next["apart"] = false;
  next["own_steps"] = 1;
  next["own_time_ns"] = 0;
  next["latest_ns"] = 0;
}

void upgrade_section(json& facts, std::uint64_t version) {
  if (!facts.is_object() || !facts.contains("section") || !facts["section"].is_object()) return;
  if (version == overlap) return;
  facts["section"]["steps_ahead"] = json::array();
  if (version == own_steps) return;
  facts["section"]["step_rows"] = json::array();
  facts["section"]["private_state"] = json::array();
}

/// A view of version 4 differs in its policy and its schedule, one of version 3 in all that came out of
/// plans.
bool upgrade_view(json& view, std::uint64_t version) {
  if (!view.value("policy", json()).is_object() || !view.value("state", json()).is_object()) return false;
  json& policy = view["policy"];
  if (version == oldest) {
    policy.update(renamed(policy, {{"law", "batch_policy"}, {"reduction", "collective"}}));
    view["state"]["last"] = plan_of(view["state"].value("last", json()));
    view["state"]["memory"] = json::array();
  }
  upgrade_schedule(view["state"]["last"], version);
  policy["tensor_rows"] = json::array();
  if (version < own_steps) add_policy_of_version_5(policy);
  if (version < overlap) policy["learning_rate_policy"] = "none";
  policy["transfer_policy"] = "none";
  return true;
}

/// 0: it is of none of these.
std::uint64_t version_of_round(const json& plan) {
  constexpr std::size_t members_of_schedule = 14;
  if (plan.contains("codec")) return oldest;
  const json next = plan.value("next", json());
  if (next.contains("slot_bytes")) return one_list_of_fields;
  if (next.size() == members_of_schedule) return own_steps;
  return next.size() == members_of_schedule + 1 ? overlap : 0;
}

bool upgrade_round(json& round, std::uint64_t& version) {
  const json plan = round.value("plan", json());
  if (!plan.is_object()) return false;
  version = version_of_round(plan);
  if (version == 0) return false;
  if (version == oldest) {
    round["facts"] = list_of(round.value("facts", json()), &facts_of);
    round["plan"] = plan_of(plan);
  }
  upgrade_schedule(round["plan"], version);
  if (round.value("facts", json()).is_array())
    for (json& facts : round["facts"]) upgrade_section(facts, version);
  return true;
}

/// Anybody may have written it, and copies of values call themselves: as deep as they lie in each other.
bool is_shallow(std::string_view line) {
  constexpr int deepest = 16;
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (in_text && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_text = !in_text;
    } else if (!in_text && (c == '{' || c == '[')) {
      if (++depth > deepest) return false;
    } else if (!in_text && (c == '}' || c == ']')) {
      --depth;
    }
  }
  return true;
}

}  // namespace

std::optional<OlderLine> upgrade_line(std::string_view line) {
  // What this version writes has this, also where a text of it says so.
  const bool may_be = line.find("\"guests\":") == std::string_view::npos;
  if (!may_be || !is_shallow(line)) return std::nullopt;
  json j = json::parse(line, nullptr, false);
  if (!j.is_object()) return std::nullopt;
  const auto version = j.find("version");
  if (version == j.end()) {
    std::uint64_t of = oldest;
    if (!upgrade_round(j, of)) return std::nullopt;
    return OlderLine{j.dump(), of};
  }
  if (*version != oldest && *version != one_list_of_fields && *version != own_steps && *version != overlap)
    return std::nullopt;
  const std::uint64_t of = version->get<std::uint64_t>();
  if (!upgrade_view(j, of)) return std::nullopt;
  return OlderLine{j.dump(), of};
}

}  // namespace rivulet::runtime
