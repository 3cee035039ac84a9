// What a decision log says, into bytes. The way back is decision_parse.cpp. Written by hand, since every
// round writes a line and the train thread waits for it: a tree of JSON values takes twelve times as long.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/digest.h"
#include "runtime/decisions/decision.h"

namespace rivulet::runtime {
namespace {

// Found by name in the templates below.
void put(std::string& out, const RowCursor& at);
void put(std::string& out, const sync::policy::Move& move);
void put(std::string& out, const RowInterval& interval);
void put(std::string& out, const SkippedRange& run);
void put(std::string& out, const sync::policy::PolicyConfig& config);
void put(std::string& out, const sync::policy::PolicyState& state);

template <class Whole>
  requires std::is_integral_v<Whole>
void put(std::string& out, Whole v) {
  char digits[24];
  out.append(digits, std::to_chars(digits, std::end(digits), v).ptr);
}

void put(std::string& out, bool v) {
  out += v ? "true" : "false";
}

/// In as few digits as give the same bits. JSON has no NaN and no infinity, and readers take -0 for a whole
/// number.
void put(std::string& out, double v) {
  if (std::isnan(v)) {
    out += "\"nan\"";
  } else if (std::isinf(v)) {
    out += v > 0 ? "\"inf\"" : "\"-inf\"";
  } else if (v == 0 && std::signbit(v)) {
    out += "-0.0";
  } else {
    char digits[32];
    out.append(digits, std::to_chars(digits, std::end(digits), v).ptr);
  }
}

void put(std::string& out, std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(),
                                 [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (!plain) {
    out += nlohmann::json(text).dump();
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

/// One after the other, in brackets.
template <class Items, class Put>
void put_list(std::string& out, const Items& items, Put put_one) {
  out += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    first = false;
    put_one(item);
  }
  out += ']';
}

template <class T>
void put(std::string& out, const std::vector<T>& items) {
  put_list(out, items, [&](const T& item) { put(out, item); });
}

/// The members of an object, in the order of the calls.
class Members {
 public:
  explicit Members(std::string& out) : out_(out) { out_ += '{'; }
  template <class T>
  Members& add(const char* key, const T& value) {
    name(key);
    put(out_, value);
    return *this;
  }
  /// A member whose value the caller puts into what is returned.
  std::string& add(const char* key) {
    name(key);
    return out_;
  }
  void end() { out_ += '}'; }

 private:
  void name(const char* key) {
    if (out_.back() != '{') out_ += ',';
    out_ += '"';
    out_ += key;
    out_ += "\":";
  }
  std::string& out_;
};

void put(std::string& out, const RowCursor& at) {
  out += '[';
  put(out, at.offset);
  out += ',';
  put(out, at.row);
  out += ']';
}

void put(std::string& out, const sync::policy::Move& m) {
  put(out, std::vector<std::uint32_t>{m.from, m.to, m.rows});
}

void put(std::string& out, const RowInterval& i) {
  Members(out)
      .add("topic", i.partition.topic)
      .add("partition", i.partition.partition)
      .add("first", i.first)
      .add("next", i.next)
      .add("trained", i.rows_trained)
      .add("dropped", i.rows_dropped)
      .add("shared", i.non_final_rows)
      .add("holes", i.holes)
      .end();
}

void put(std::string& out, const SkippedRange& r) {
  Members(out)
      .add("topic", r.partition.topic)
      .add("partition", r.partition.partition)
      .add("from", r.from)
      .add("to", r.to)
      .add("rows", r.rows)
      .add("fate", r.fate)
      .end();
}

void put(std::string& out, const sync::Facts& f, const sync::FactsSection& section) {
  Members facts(out);
  facts.add("step", f.step)
      .add("agreed_rows", f.agreed_rows)
      .add("stop_at_step", f.stop_at_step)
      .add("stop_at_rows", f.stop_at_rows)
      .add("rows", f.rows)
      .add("rows_since_sync", f.rows_since_sync)
      .add("flags", f.flags)
      .add("queue_rows", f.queue_rows)
      .add("stream_rate", f.stream_rate)
      .add("compute_s", f.compute_seconds)
      .add("wait_s", f.wait_seconds)
      .add("sync_s", f.sync_seconds)
      .add("loss_sum", f.loss_sum)
      .add("correct", f.correct)
      .add("gradient_norm2", f.gradient_norm2)
      .add("rows_dropped", f.rows_dropped)
      .add("rows_max", f.rows_max)
      .add("plan_hash", f.plan_hash)
      .add("interval", f.interval);
  if ((f.flags & sync::flag_digest) != 0) facts.add("digest", f.digest.hex());
  if (!section.more_intervals.empty()) facts.add("more_intervals", section.more_intervals);
  if (!section.runs.empty()) facts.add("runs", section.runs);
  facts.end();
}

void put(std::string& out, const sync::policy::RoundPlan& p, std::uint64_t hash) {
  Members(out)
      .add("mode", name_of(p.mode))
      .add("reduction", name_of(p.reduction))
      .add("aggregation", std::string_view(p.aggregation))
      .add("codec", std::string_view(p.compressor))
      .add("keep_ratio", p.keep_ratio)
      .add("payload_max_bytes", p.payload_max_bytes)
      .add("weights", p.weights)
      .add("next_rows", p.next_rows)
      .add("next_wait_ns", p.next_wait.count())
      .add("next_whole", p.next_whole)
      .add("rest", p.rest)
      .add("next_moves", p.next_moves)
      .add("learning_rate_factor", p.learning_rate_factor)
      .add("freeze", p.freeze)
      .add("checkpoint", p.checkpoint)
      .add("stop", p.stop)
      .add("leaving", p.leaving)
      .add("why", std::string_view(p.why))
      .add("hash", hash)
      .end();
}

void put(std::string& out, const sync::policy::PolicyConfig& c) {
  Members(out)
      .add("law", std::string_view(c.batch_policy))
      .add("rows", c.rows)
      .add("min", c.min)
      .add("max", c.max)
      .add("tick_ns", c.tick.count())
      .add("max_wait_ns", c.max_wait.count())
      .add("idle_wait_max_ns", c.idle_wait_max.count())
      .add("reduction", c.reduction ? name_of(*c.reduction) : "auto")
      .add("contribution_bytes", c.contribution_bytes)
      .add("checkpoint_rounds", c.checkpoint_rounds)
      .end();
}

void put(std::string& out, const sync::policy::PolicyState& s) {
  Members state(out);
  state.add("round", s.round)
      .add("idle_rounds", s.idle_rounds)
      .add("memory", s.memory)
      .add("table_hash", s.table_hash);
  put(state.add("last"), s.last, sync::policy::hash_of(s.last, s.table_hash));
  state.end();
}

/// A line that was changed, or torn and joined with another, is found out, whatever it still says.
std::string sealed(std::string line) {
  const std::string sum = rivulet::digest_of(std::as_bytes(std::span(line))).hex().substr(16);
  line.pop_back();
  return line + ",\"sum\":\"" + sum + "\"}";
}

std::string round_line(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
                       const sync::policy::RoundPlan& plan, std::uint64_t hash) {
  std::string line;
  line.reserve(1024 * (table.size() + 1));
  Members members(line);
  members.add("view", view).add("round", round);
  members.add("step", table.facts.empty() ? std::uint64_t{0} : table.facts.front().step);
  std::size_t rank = 0;
  put_list(members.add("facts"), table.facts,
           [&](const sync::Facts& f) { put(line, f, table.sections[rank++]); });
  put(members.add("plan"), plan, hash);
  members.end();
  return sealed(std::move(line));
}

std::optional<Difference> first_difference(const std::string& recorded, const std::string& computed) {
  const auto there = nlohmann::json::parse(recorded);
  const auto here = nlohmann::json::parse(computed);
  for (const auto& [field, value] : there.items()) {
    if (field == "hash") continue;            // of the others
    const std::string wanted = value.dump();  // and not the values: -0 equals 0
    const std::string found = here.at(field).dump();
    if (wanted != found) return Difference{field, wanted, found};
  }
  return std::nullopt;
}

}  // namespace

std::string decision_line(const ViewRecord& v) {
  std::string line;
  Members members(line);
  members.add("version", decision_log_version)
      .add("view", v.number)
      .add("token", v.token)
      .add("members", v.members.list())
      .add("rank", v.rank)
      .add("lineage", v.from.lineage)
      .add("step", v.from.step)
      .add("digest", std::string_view(v.digest))
      .add("group", std::string_view(v.group))
      .add("policy", v.policy)
      .add("state", v.state)
      .end();
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
  std::string there;
  std::string here;
  put(there, recorded, 0);
  put(here, computed, 0);
  return there == here ? std::nullopt : first_difference(there, here);
}

std::optional<Difference> difference(const sync::policy::PolicyState& recorded,
                                     const sync::policy::PolicyState& computed) {
  std::string there;
  std::string here;
  put(there, recorded);
  put(here, computed);
  return there == here ? std::nullopt : first_difference(there, here);
}

std::string text_of_number(double value) {
  std::string text;
  put(text, value);
  return text;
}

}  // namespace rivulet::runtime
