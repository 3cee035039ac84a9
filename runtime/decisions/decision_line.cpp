// Encodes the values of a decision log. decision_parse.cpp decodes them.
#include <nlohmann/json.hpp>

#include "core/digest.h"
#include "runtime/decisions/decision.h"
#include "runtime/decisions/json_writer.h"

namespace rivulet::runtime {
namespace {

/// Appends the checksum, which detects edited lines and torn lines that were joined with others.
std::string sealed(std::string line) {
  const std::string sum = rivulet::digest_of(std::as_bytes(std::span(line))).hex().substr(16);
  line.pop_back();
  return line + ",\"sum\":\"" + sum + "\"}";
}

void put_facts(JsonWriter& out, const sync::Facts& facts, const sync::FactsSection& section) {
  out.open('{');
  measured_fields(facts, out);
  if (!section.empty()) out("section", section);
  out.close('}');
}

void put_plan(JsonWriter& out, const sync::policy::RoundPlan& plan, std::uint64_t hash) {
  out.open('{');
  fields(plan, out);
  out("hash", hash);
  out.close('}');
}

std::string round_line(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
                       const sync::policy::RoundPlan& plan, std::uint64_t hash) {
  std::string line;
  line.reserve(1024 * (table.size() + 1));
  JsonWriter out(line);
  out.open('{');
  out("view", view);
  out("round", round);
  out("step", table.facts.empty() ? std::uint64_t{0} : table.facts.front().step);
  std::size_t rank = 0;
  out.begin("facts");
  out.put_list(table.facts, [&](const sync::Facts& f) { put_facts(out, f, table.sections[rank++]); });
  out.begin("plan");
  put_plan(out, plan, hash);
  out.close('}');
  return sealed(std::move(line));
}

/// The first member in which two objects differ, by its path: "now.weights".
std::optional<Difference> first_difference(const nlohmann::json& there, const nlohmann::json& here,
                                           const std::string& path) {
  for (const auto& [name, wanted] : there.items()) {
    const auto& found = here.at(name);
    if (wanted.is_object()) {
      if (auto inner = first_difference(wanted, found, path + name + ".")) return inner;
    } else if (wanted.dump() != found.dump()) {  // compares texts, since -0 equals 0
      return Difference{path + name, wanted.dump(), found.dump()};
    }
  }
  return std::nullopt;
}

template <class T>
std::optional<Difference> difference_of(const T& recorded, const T& computed) {
  std::string there;
  std::string here;
  JsonWriter(there).put(recorded);
  JsonWriter(here).put(computed);
  if (there == here) return std::nullopt;
  return first_difference(nlohmann::json::parse(there), nlohmann::json::parse(here), "");
}

}  // namespace

std::string decision_line(const ViewRecord& v) {
  std::string line;
  JsonWriter out(line);
  out.open('{');
  out("version", decision_log_version);
  out("view", v.number);
  out("token", v.token);
  out("members", v.members.list());
  out("rank", v.rank);
  out("lineage", v.from.lineage);
  out("step", v.from.step);
  out("digest", v.digest);
  out("group", v.group);
  out("policy", v.policy);
  out("state", v.state);
  out.close('}');
  return sealed(std::move(line));
}

std::string decision_line(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
                          const sync::policy::RoundPlan& plan) {
  return round_line(view, round, table, plan, sync::policy::hash_of(plan, sync::hash_of(table)));
}

std::string decision_line(const RoundRecord& r) {
  return round_line(r.view, r.round, r.table, r.plan, r.plan_hash);
}

std::optional<Difference> difference(const sync::policy::RoundPlan& recorded,
                                     const sync::policy::RoundPlan& computed) {
  return difference_of(recorded, computed);
}

std::optional<Difference> difference(const sync::policy::PolicyState& recorded,
                                     const sync::policy::PolicyState& computed) {
  return difference_of(recorded, computed);
}

std::string text_of_number(double value) {
  std::string text;
  JsonWriter(text).put(value);
  return text;
}

}  // namespace rivulet::runtime
