// What a decision log says, into bytes. The way back is decision_parse.cpp.
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/digest.h"
#include "runtime/decision.h"

namespace rivulet::runtime {
namespace {

using nlohmann::json;

/// JSON has no NaN and no infinity: left to the library they would become null.
json number_json(double v) {
  if (std::isfinite(v)) return v;
  if (std::isnan(v)) return "nan";
  return v > 0 ? "inf" : "-inf";
}

json numbers_json(const std::vector<double>& values) {
  json out = json::array();
  for (const double v : values) out.push_back(number_json(v));
  return out;
}

json cursor_json(const RowCursor& at) {
  return {at.offset, at.row};
}

json interval_json(const RowInterval& i) {
  return {{"topic", i.partition.topic},    {"partition", i.partition.partition},
          {"first", cursor_json(i.first)}, {"next", cursor_json(i.next)},
          {"trained", i.rows_trained},     {"dropped", i.rows_dropped},
          {"shared", i.rows_shared},       {"holes", i.holes}};
}

json run_json(const PassedRun& r) {
  return {{"topic", r.partition.topic},
          {"partition", r.partition.partition},
          {"from", cursor_json(r.from)},
          {"to", cursor_json(r.to)},
          {"rows", r.rows},
          {"fate", r.fate}};
}

json facts_json(const sync::Facts& f, const sync::FactsSection& section) {
  json j = {{"step", f.step},
            {"agreed_rows", f.agreed_rows},
            {"stop_at_step", f.stop_at_step},
            {"stop_at_rows", f.stop_at_rows},
            {"rows", f.rows},
            {"rows_since_sync", f.rows_since_sync},
            {"flags", f.flags},
            {"queue_rows", f.queue_rows},
            {"stream_rate", number_json(f.stream_rate)},
            {"compute_s", number_json(f.compute_seconds)},
            {"wait_s", number_json(f.wait_seconds)},
            {"sync_s", number_json(f.sync_seconds)},
            {"loss_sum", number_json(f.loss_sum)},
            {"correct", f.correct},
            {"gradient_norm2", number_json(f.gradient_norm2)},
            {"rows_dropped", f.rows_dropped},
            {"rows_max", f.rows_max},
            {"plan_hash", f.plan_hash},
            {"interval", interval_json(f.interval)}};
  if ((f.flags & sync::flag_digest) != 0) j["digest"] = f.digest.hex();
  for (const auto& more : section.more_intervals) j["more_intervals"].push_back(interval_json(more));
  for (const auto& run : section.runs) j["runs"].push_back(run_json(run));
  return j;
}

json plan_json(const sync::policy::RoundPlan& p, std::uint64_t hash) {
  json moves = json::array();
  for (const auto& m : p.next_moves) moves.push_back({m.from, m.to, m.rows});
  return {{"mode", std::string(name_of(p.mode))},
          {"reduction", std::string(name_of(p.reduction))},
          {"aggregation", p.aggregation},
          {"codec", p.codec},
          {"keep_ratio", number_json(p.keep_ratio)},
          {"payload_max_bytes", p.payload_max_bytes},
          {"weights", numbers_json(p.weights)},
          {"next_rows", p.next_rows},
          {"next_wait_ns", p.next_wait.count()},
          {"next_whole", p.next_whole},
          {"rest", p.rest},
          {"next_moves", moves},
          {"learning_rate_factor", number_json(p.learning_rate_factor)},
          {"freeze", p.freeze},
          {"checkpoint", p.checkpoint},
          {"stop", p.stop},
          {"leaving", p.leaving},
          {"why", p.why},
          {"hash", hash}};
}

json plan_json(const sync::policy::RoundPlan& p, const sync::FactsTable& of) {
  return plan_json(p, sync::policy::hash_of(p, sync::hash_of(of)));
}

json round_json(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table, json plan) {
  json facts = json::array();
  for (std::size_t rank = 0; rank < table.facts.size(); ++rank)
    facts.push_back(facts_json(table.facts[rank], table.sections[rank]));
  const std::uint64_t step = table.facts.empty() ? 0 : table.facts.front().step;
  return {{"view", view}, {"round", round}, {"step", step}, {"facts", facts}, {"plan", std::move(plan)}};
}

json policy_json(const sync::policy::PolicyConfig& c) {
  return {{"law", c.batch_policy},
          {"rows", c.rows},
          {"min", c.min},
          {"max", c.max},
          {"tick_ns", c.tick.count()},
          {"max_wait_ns", c.max_wait.count()},
          {"idle_wait_max_ns", c.idle_wait_max.count()},
          {"reduction", c.reduction ? std::string(name_of(*c.reduction)) : "auto"},
          {"contribution_bytes", c.contribution_bytes},
          {"checkpoint_rounds", c.checkpoint_rounds}};
}

json state_json(const sync::policy::PolicyState& s) {
  return {{"round", s.round},
          {"idle_rounds", s.idle_rounds},
          {"memory", numbers_json(s.memory)},
          {"table_hash", s.table_hash},
          {"last", plan_json(s.last, sync::policy::hash_of(s.last, s.table_hash))}};
}

/// A line that was changed, or torn and joined with another, is found out, whatever it still says.
std::string sealed(const json& record) {
  std::string line = record.dump();
  const std::uint64_t sum = rivulet::digest_of(std::as_bytes(std::span(line))).low;
  char end[32];
  std::snprintf(end, sizeof end, ",\"sum\":\"%016llx\"}", static_cast<unsigned long long>(sum));
  line.pop_back();
  return line + end;
}

std::optional<Difference> first_difference(const json& recorded, const json& computed) {
  for (const auto& [field, value] : recorded.items()) {
    if (field == "hash") continue;  // of the others
    const std::string there = value.dump();
    const std::string here = computed.at(field).dump();
    if (there != here) return Difference{field, there, here};
  }
  return std::nullopt;
}

}  // namespace

std::string decision_line(const ViewRecord& v) {
  return sealed({{"version", decision_log_version},
                 {"view", v.number},
                 {"token", v.token},
                 {"members", v.members.list()},
                 {"rank", v.rank},
                 {"lineage", v.from.lineage},
                 {"step", v.from.step},
                 {"digest", v.digest},
                 {"group", v.group},
                 {"policy", policy_json(v.policy)},
                 {"state", state_json(v.state)}});
}

std::string decision_line(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
                          const sync::policy::RoundPlan& plan) {
  return sealed(round_json(view, round, table, plan_json(plan, table)));
}

std::string decision_line(const RoundRecord& r) {
  return sealed(round_json(r.view, r.round, r.table, plan_json(r.plan, r.plan_hash)));
}

std::optional<Difference> difference(const sync::policy::RoundPlan& recorded,
                                     const sync::policy::RoundPlan& computed) {
  return first_difference(plan_json(recorded, std::uint64_t{0}), plan_json(computed, std::uint64_t{0}));
}

std::optional<Difference> difference(const sync::policy::PolicyState& recorded,
                                     const sync::policy::PolicyState& computed) {
  return first_difference(state_json(recorded), state_json(computed));
}

std::string text_of_number(double value) {
  return number_json(value).dump();
}

}  // namespace rivulet::runtime
