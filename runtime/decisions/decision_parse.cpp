// Lines of a decision log, back into what they say. A log is a file that anybody may have written.
#include <cmath>
#include <concepts>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/digest.h"
#include "runtime/decisions/decision.h"

namespace rivulet::runtime {
namespace {

using nlohmann::json;

constexpr std::size_t seal_bytes = 26;  // ,"sum":"0123456789abcdef"}

/// Reads members of JSON objects into numbers of their exact types. The first trouble stays; what is read
/// after it is worth nothing.
class FieldReader {
 public:
  [[nodiscard]] bool fine() const { return trouble_.empty(); }
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  void complain(std::string what) {
    if (trouble_.empty()) trouble_ = std::move(what);
  }
  const json& member(const json& object, const char* key) {
    static const json nothing;
    if (!object.is_object()) return complain(std::string("no object around ") + key), nothing;
    const auto found = object.find(key);
    if (found == object.end()) return complain(std::string("no ") + key), nothing;
    return *found;
  }
  template <class T>
  void get(const json& object, const char* key, T& into) {
    value(member(object, key), key, into);
  }
  template <class T>
    requires std::unsigned_integral<T> && (!std::same_as<T, bool>)
  void value(const json& j, const char* key, T& into) {
    if (!j.is_number_unsigned() || j.get<std::uint64_t>() > std::numeric_limits<T>::max())
      return complain(std::string(key) + " is no count that fits");
    into = static_cast<T>(j.get<std::uint64_t>());
  }
  template <std::signed_integral T>
  void value(const json& j, const char* key, T& into) {
    const bool fits = j.is_number_integer() &&
                      (!j.is_number_unsigned() ||
                       j.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}) &&
                      j.get<std::int64_t>() <= std::numeric_limits<T>::max() &&
                      j.get<std::int64_t>() >= std::numeric_limits<T>::min();
    if (!fits) return complain(std::string(key) + " is no whole number that fits");
    into = static_cast<T>(j.get<std::int64_t>());
  }
  void value(const json& j, const char* key, bool& into) {
    if (!j.is_boolean()) return complain(std::string(key) + " is neither true nor false");
    into = j.get<bool>();
  }
  void value(const json& j, const char* key, double& into) {
    if (j.is_number())
      into = j.get<double>();
    else if (j == "nan")
      into = std::numeric_limits<double>::quiet_NaN();
    else if (j == "inf")
      into = std::numeric_limits<double>::infinity();
    else if (j == "-inf")
      into = -std::numeric_limits<double>::infinity();
    else
      complain(std::string(key) + " is no number");
  }
  void value(const json& j, const char* key, std::string& into) {
    if (!j.is_string()) return complain(std::string(key) + " is no text");
    into = j.get<std::string>();
  }
  void value(const json& j, const char* key, Duration& into) {
    std::int64_t count = 0;
    value(j, key, count);
    into = Duration(count);
  }
  template <class T>
  void value(const json& j, const char* key, std::vector<T>& into) {
    if (!j.is_array()) return complain(std::string(key) + " is no list");
    for (const json& item : j) {
      if (!fine()) return;
      T one{};
      value(item, key, one);
      into.push_back(std::move(one));
    }
  }
  void value(const json& j, const char* key, RowCursor& into) {
    if (!j.is_array() || j.size() != 2) return complain(std::string(key) + " is no place");
    value(j[0], key, into.offset);
    value(j[1], key, into.row);
  }
  void value(const json& j, const char* key, sync::policy::Move& into) {
    if (!j.is_array() || j.size() != 3) return complain(std::string(key) + " are no moves");
    value(j[0], key, into.from);
    value(j[1], key, into.to);
    value(j[2], key, into.rows);
  }
  void value(const json& j, const char*, RowInterval& into) {
    get(j, "topic", into.partition.topic);
    get(j, "partition", into.partition.partition);
    get(j, "first", into.first);
    get(j, "next", into.next);
    get(j, "trained", into.rows_trained);
    get(j, "dropped", into.rows_dropped);
    get(j, "shared", into.non_final_rows);
    get(j, "holes", into.holes);
  }
  void value(const json& j, const char*, SkippedRange& into) {
    get(j, "topic", into.partition.topic);
    get(j, "partition", into.partition.partition);
    get(j, "from", into.from);
    get(j, "to", into.to);
    get(j, "rows", into.rows);
    get(j, "fate", into.fate);
  }
  /// A Digest in hexadecimal digits; that they are all there, and lower-case, the caller's comparison of
  /// bytes shows.
  void value(const json& j, const char* key, Digest& into) {
    unsigned long long high = 0;
    unsigned long long low = 0;
    std::string text;
    value(j, key, text);
    if (text.size() != 32 || std::sscanf(text.c_str(), "%16llx%16llx", &high, &low) != 2)
      return complain(std::string(key) + " is no digest");
    into = {low, high};
  }
  /// One of a few names.
  template <class Enum>
  void name(const json& object, const char* key, std::initializer_list<Enum> all, Enum& into) {
    std::string text;
    get(object, key, text);
    for (const Enum one : all)
      if (name_of(one) == text) {
        into = one;
        return;
      }
    complain(std::string(key) + " \"" + text.substr(0, 40) + "\" is unknown");
  }

 private:
  std::string trouble_;
};

constexpr auto all_modes = {sync::policy::Mode::gradients, sync::policy::Mode::parameters,
                            sync::policy::Mode::local,     sync::policy::Mode::hold,
                            sync::policy::Mode::idle,      sync::policy::Mode::skip};
constexpr auto all_reductions = {sync::policy::Reduction::gather, sync::policy::Reduction::sum};

void read_facts(FieldReader& in, const json& j, sync::Facts& f, sync::FactsSection& section) {
  in.get(j, "step", f.step);
  in.get(j, "agreed_rows", f.agreed_rows);
  in.get(j, "stop_at_step", f.stop_at_step);
  in.get(j, "stop_at_rows", f.stop_at_rows);
  in.get(j, "rows", f.rows);
  in.get(j, "rows_since_sync", f.rows_since_sync);
  in.get(j, "flags", f.flags);
  in.get(j, "queue_rows", f.queue_rows);
  in.get(j, "stream_rate", f.stream_rate);
  in.get(j, "compute_s", f.compute_seconds);
  in.get(j, "wait_s", f.wait_seconds);
  in.get(j, "sync_s", f.sync_seconds);
  in.get(j, "loss_sum", f.loss_sum);
  in.get(j, "correct", f.correct);
  in.get(j, "gradient_norm2", f.gradient_norm2);
  in.get(j, "rows_dropped", f.rows_dropped);
  in.get(j, "rows_max", f.rows_max);
  in.get(j, "plan_hash", f.plan_hash);
  in.get(j, "interval", f.interval);
  if ((f.flags & sync::flag_digest) != 0) in.get(j, "digest", f.digest);
  if (in.fine() && j.contains("more_intervals")) in.get(j, "more_intervals", section.more_intervals);
  if (in.fine() && j.contains("runs")) in.get(j, "runs", section.runs);
  for (const double number : {f.stream_rate, f.compute_seconds, f.wait_seconds, f.sync_seconds})
    if (!std::isfinite(number) || number < 0) in.complain("a rate or a time that is no such thing");
}

void read_plan(FieldReader& in, const json& j, sync::policy::RoundPlan& p) {
  in.name(j, "mode", all_modes, p.mode);
  in.name(j, "reduction", all_reductions, p.reduction);
  in.get(j, "aggregation", p.aggregation);
  in.get(j, "codec", p.compressor);
  in.get(j, "keep_ratio", p.keep_ratio);
  in.get(j, "payload_max_bytes", p.payload_max_bytes);
  in.get(j, "weights", p.weights);
  in.get(j, "next_rows", p.next_rows);
  in.get(j, "next_wait_ns", p.next_wait);
  in.get(j, "next_whole", p.next_whole);
  in.get(j, "rest", p.rest);
  in.get(j, "next_moves", p.next_moves);
  in.get(j, "learning_rate_factor", p.learning_rate_factor);
  in.get(j, "freeze", p.freeze);
  in.get(j, "checkpoint", p.checkpoint);
  in.get(j, "stop", p.stop);
  in.get(j, "leaving", p.leaving);
  in.get(j, "why", p.why);
}

void read_policy(FieldReader& in, const json& j, sync::policy::PolicyConfig& c) {
  in.get(j, "law", c.batch_policy);
  in.get(j, "rows", c.rows);
  in.get(j, "min", c.min);
  in.get(j, "max", c.max);
  in.get(j, "tick_ns", c.tick);
  in.get(j, "max_wait_ns", c.max_wait);
  in.get(j, "idle_wait_max_ns", c.idle_wait_max);
  if (in.member(j, "reduction") == "auto") {
    c.reduction.reset();
  } else {
    c.reduction = sync::policy::Reduction::gather;
    in.name(j, "reduction", all_reductions, *c.reduction);
  }
  in.get(j, "contribution_bytes", c.contribution_bytes);
  in.get(j, "checkpoint_rounds", c.checkpoint_rounds);
  // The laws double and subtract them.
  constexpr Duration longest = std::chrono::hours(24 * 366);
  for (const Duration d : {c.tick, c.max_wait, c.idle_wait_max})
    if (d <= Duration(0) || d > longest) in.complain("a time of the policy that no configuration allows");
}

Result<DecisionRecord> read_view(const json& j) {
  FieldReader in;
  ViewRecord v;
  in.get(j, "view", v.number);
  in.get(j, "token", v.token);
  std::vector<std::string> members;
  in.get(j, "members", members);
  v.members = std::move(members);
  in.get(j, "rank", v.rank);
  in.get(j, "lineage", v.from.lineage);
  in.get(j, "step", v.from.step);
  in.get(j, "digest", v.digest);
  in.get(j, "group", v.group);
  read_policy(in, in.member(j, "policy"), v.policy);
  const json& state = in.member(j, "state");
  in.get(state, "round", v.state.round);
  in.get(state, "idle_rounds", v.state.idle_rounds);
  in.get(state, "memory", v.state.memory);
  in.get(state, "table_hash", v.state.table_hash);
  read_plan(in, in.member(state, "last"), v.state.last);
  if (v.rank >= v.members.size()) in.complain("a view that its own device is not in");
  const auto& last = v.state.last;
  if (last.next_rows.size() != v.members.size()) in.complain("next_rows are not of this view");
  if (!in.fine()) return Error{ErrorCode::bad_record, in.trouble()};
  return DecisionRecord(std::move(v));
}

Result<DecisionRecord> read_round(const json& j) {
  FieldReader in;
  RoundRecord r;
  in.get(j, "view", r.view);
  in.get(j, "round", r.round);
  const json& facts = in.member(j, "facts");
  if (!facts.is_array() || facts.empty()) in.complain("facts are of nobody");
  for (std::size_t rank = 0; rank < facts.size() && in.fine(); ++rank) {
    sync::Facts& f = r.table.facts.emplace_back();
    read_facts(in, facts[rank], f, r.table.sections.emplace_back());
    f.round = r.round;
    f.rank = static_cast<std::uint32_t>(rank);
    if (f.step != r.table.facts.front().step) in.complain("devices are at different steps");
  }
  const json& plan = in.member(j, "plan");
  read_plan(in, plan, r.plan);
  in.get(plan, "hash", r.plan_hash);
  if (!in.fine()) return Error{ErrorCode::bad_record, in.trouble()};
  return DecisionRecord(std::move(r));
}

/// Empty: the line is as it was written.
std::string trouble_with_seal(std::string_view line) {
  const auto end = line.size() < seal_bytes ? std::string_view() : line.substr(line.size() - seal_bytes);
  if (!end.starts_with(",\"sum\":\"") || !end.ends_with("\"}")) {
    if (line.starts_with('{') && line.ends_with('}') && line.find("\"facts\"") != std::string_view::npos)
      return "no checksum: an older version wrote this, of which no plan can be made again";
    return "this is no line of a decision log, or it was cut short";
  }
  std::string text(line.substr(0, line.size() - seal_bytes));
  text += '}';
  char sum[17];
  std::snprintf(sum, sizeof sum, "%016llx",
                static_cast<unsigned long long>(rivulet::digest_of(std::as_bytes(std::span(text))).low));
  return end.substr(8, 16) == sum ? "" : "its checksum is another: it was changed or damaged";
}

}  // namespace

Result<DecisionRecord> parse_decision_line(std::string_view line) {
  const auto bad = [](std::string why) { return Error{ErrorCode::bad_record, std::move(why)}; };
  if (line.size() > decision_line_max_bytes)
    return bad("longer than " + std::to_string(decision_line_max_bytes) + " bytes");
  if (auto trouble = trouble_with_seal(line); !trouble.empty()) return bad(std::move(trouble));
  const json j = json::parse(line, nullptr, false);
  if (!j.is_object()) return bad("this is no JSON object");
  const auto version = j.find("version");
  if (version != j.end() && *version != decision_log_version)
    // Anybody may have written it: what is no number may be as deep as the line is long.
    return bad("version " + (version->is_number() ? version->dump() : std::string("that is no number")) +
               ", this build reads " + std::to_string(decision_log_version));
  auto record = version != j.end() ? read_view(j) : read_round(j);
  if (!record) return record;
  // What was passed over in reading, such as a member of another name or a number of another kind, shows
  // here.
  const auto* view = std::get_if<ViewRecord>(&record.value());
  const std::string again =
      view != nullptr ? decision_line(*view) : decision_line(std::get<RoundRecord>(record.value()));
  if (again != line) return bad("it holds what this version does not write");
  return record;
}

}  // namespace rivulet::runtime
