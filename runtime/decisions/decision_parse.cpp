// Decodes the lines of a decision log. The file is untrusted.
#include <cmath>
#include <concepts>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/digest.h"
#include "runtime/decisions/decision.h"
#include "runtime/decisions/json_writer.h"

namespace rivulet::runtime {
namespace {

using nlohmann::json;

constexpr std::size_t seal_bytes = 26;  // ,"sum":"0123456789abcdef"}

const json nothing;

constexpr auto all_modes = {sync::policy::Mode::gradients, sync::policy::Mode::delta,
                            sync::policy::Mode::defer, sync::policy::Mode::idle, sync::policy::Mode::skip};
constexpr auto all_retreats = {sync::policy::Retreat::none, sync::policy::Retreat::roll_back,
                               sync::policy::Retreat::give_up};

/// Reads values of exact types from members of JSON objects. Keeps the first error; later values are invalid.
class JsonReader {
 public:
  [[nodiscard]] bool fine() const { return trouble_.empty(); }
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  void report_error(std::string what);
  const json& member(const json& object, const char* name);
  void get(const json& object, const char* name, auto& into) { value(member(object, name), name, into); }

  template <std::integral T>
  void value(const json& j, const char* name, T& into) {
    if constexpr (std::same_as<T, bool>)
      into = boolean(j, name);
    else if constexpr (std::is_signed_v<T>)
      into = static_cast<T>(whole(j, name, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    else
      into = static_cast<T>(count(j, name, std::numeric_limits<T>::max()));
  }
  void value(const json& j, const char* name, double& into);
  void value(const json& j, const char* name, float& into);
  void value(const json& j, const char* name, std::string& into);
  void value(const json& j, const char* name, Duration& into);
  void value(const json& j, const char* name, Digest& into);
  void value(const json& j, const char* name, sync::policy::Mode& into) { word(j, name, all_modes, into); }
  void value(const json& j, const char* name, sync::policy::Retreat& into) {
    word(j, name, all_retreats, into);
  }
  template <class T>
  void value(const json& j, const char* name, std::vector<T>& into) {
    for (std::size_t i = 0, n = items(j, name); i < n && fine(); ++i)
      value(item(j, name, i), name, into.emplace_back());
  }
  template <class T>
  void value(const json& j, const char* name, std::optional<T>& into) {
    into.reset();
    if (!j.is_null()) value(j, name, into.emplace());
  }
  template <HasFields T>
  void value(const json& j, const char* name, T& into) {
    std::size_t next = 0;
    fields(into, [&](const char* field, auto& member) {
      if constexpr (AsArray<T>)
        value(item(j, name, next++), name, member);
      else
        get(j, field, member);
    });
  }
  /// Visitor for a list of fields that are members of `object`.
  auto into(const json& object) {
    return [this, &object](const char* name, auto& field) { get(object, name, field); };
  }

 private:
  bool boolean(const json& j, const char* name);
  std::int64_t whole(const json& j, const char* name, std::int64_t least, std::int64_t most);
  std::uint64_t count(const json& j, const char* name, std::uint64_t most);
  std::size_t items(const json& j, const char* name);
  const json& item(const json& j, const char* name, std::size_t index);
  template <class T>
  void word(const json& j, const char* name, std::initializer_list<T> all, T& into);
  std::string trouble_;
};

void JsonReader::report_error(std::string what) {
  if (trouble_.empty()) trouble_ = std::move(what);
}

const json& JsonReader::member(const json& object, const char* name) {
  if (!object.is_object())
    return report_error(std::string("expected a JSON object with the member ") + name), nothing;
  const auto found = object.find(name);
  if (found == object.end()) return report_error(std::string("missing member ") + name), nothing;
  return *found;
}

std::size_t JsonReader::items(const json& j, const char* name) {
  if (!j.is_array()) return report_error(std::string(name) + " is not a list"), 0;
  return j.size();
}

const json& JsonReader::item(const json& j, const char* name, std::size_t index) {
  if (!j.is_array() || index >= j.size())
    return report_error(std::string(name) + " has too few elements"), nothing;
  return j[index];
}

bool JsonReader::boolean(const json& j, const char* name) {
  if (!j.is_boolean()) return report_error(std::string(name) + " is neither true nor false"), false;
  return j.get<bool>();
}

std::uint64_t JsonReader::count(const json& j, const char* name, std::uint64_t most) {
  if (!j.is_number_unsigned() || j.get<std::uint64_t>() > most)
    return report_error(std::string(name) + " is not a non-negative integer in range"), 0;
  return j.get<std::uint64_t>();
}

std::int64_t JsonReader::whole(const json& j, const char* name, std::int64_t least, std::int64_t most) {
  constexpr std::uint64_t largest{std::numeric_limits<std::int64_t>::max()};
  const bool fits = j.is_number_integer() && (!j.is_number_unsigned() || j.get<std::uint64_t>() <= largest) &&
                    j.get<std::int64_t>() <= most && j.get<std::int64_t>() >= least;
  if (!fits) return report_error(std::string(name) + " is not an integer in range"), 0;
  return j.get<std::int64_t>();
}

void JsonReader::value(const json& j, const char* name, double& into) {
  if (j.is_number())
    into = j.get<double>();
  else if (j == "nan")
    into = std::numeric_limits<double>::quiet_NaN();
  else if (j == "inf")
    into = std::numeric_limits<double>::infinity();
  else if (j == "-inf")
    into = -std::numeric_limits<double>::infinity();
  else
    report_error(std::string(name) + " is not a number");
}

/// The comparison of the whole line later rejects values with more than 32 bits.
void JsonReader::value(const json& j, const char* name, float& into) {
  double wide = 0;
  value(j, name, wide);
  constexpr double most = std::numeric_limits<float>::max();
  into = static_cast<float>(std::isfinite(wide) ? std::clamp(wide, -most, most) : wide);
}

void JsonReader::value(const json& j, const char* name, std::string& into) {
  if (!j.is_string()) return report_error(std::string(name) + " is not a string");
  into = j.get<std::string>();
}

void JsonReader::value(const json& j, const char* name, Duration& into) {
  into = Duration(
      whole(j, name, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()));
}

/// The comparison of the whole line later rejects missing digits and upper case.
void JsonReader::value(const json& j, const char* name, Digest& into) {
  unsigned long long high = 0;
  unsigned long long low = 0;
  std::string text;
  value(j, name, text);
  if (text.size() != 32 || std::sscanf(text.c_str(), "%16llx%16llx", &high, &low) != 2)
    return report_error(std::string(name) + " is not a digest of 32 hexadecimal digits");
  into = {low, high};
}

/// Reads an enum by name.
template <class T>
void JsonReader::word(const json& j, const char* name, std::initializer_list<T> all, T& into) {
  std::string text;
  value(j, name, text);
  for (const T one : all)
    if (name_of(one) == text) {
      into = one;
      return;
    }
  report_error(std::string(name) + " \"" + text.substr(0, 40) + "\" is unknown");
}

void read_facts(JsonReader& in, const json& j, sync::Facts& f, sync::FactsSection& section) {
  measured_fields(f, in.into(j));
  if (in.fine() && j.contains("section")) in.get(j, "section", section);
  for (const double number : {f.stream_rate, f.compute_seconds, f.wait_seconds, f.sync_seconds})
    if (!std::isfinite(number) || number < 0)
      in.report_error("the facts contain a rate or time that is negative or not finite");
}

void read_policy(JsonReader& in, const json& j, sync::policy::PolicyConfig& c) {
  fields(c, in.into(j));
  // Limits them since controllers double and subtract them.
  constexpr Duration longest = std::chrono::hours(24 * 366);
  for (const Duration d : {c.tick, c.max_wait, c.idle_wait_max})
    if (d <= Duration(0) || d > longest)
      in.report_error("tick and maximum waits of the policy must be above 0 and at most 366 days");
}

Result<DecisionRecord> read_view(const json& j) {
  JsonReader in;
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
  in.get(j, "state", v.state);
  if (v.rank >= v.members.size()) in.report_error("the rank must be less than the number of members");
  const auto& last = v.state.last;
  if (last.next.rows.size() != v.members.size())
    in.report_error("the number of devices in the view's schedule differs from its number of members");
  if (!in.fine()) return Error{ErrorCode::bad_record, in.trouble()};
  return DecisionRecord(std::move(v));
}

Result<DecisionRecord> read_round(const json& j) {
  JsonReader in;
  RoundRecord r;
  in.get(j, "view", r.view);
  in.get(j, "round", r.round);
  const json& facts = in.member(j, "facts");
  if (!facts.is_array() || facts.empty()) in.report_error("the facts must be a non-empty list");
  for (std::size_t rank = 0; rank < facts.size() && in.fine(); ++rank) {
    sync::Facts& f = r.table.facts.emplace_back();
    read_facts(in, facts[rank], f, r.table.sections.emplace_back());
    f.round = r.round;
    f.rank = static_cast<std::uint32_t>(rank);
    if (f.step != r.table.facts.front().step) in.report_error("the steps in the facts of the devices differ");
  }
  const json& plan = in.member(j, "plan");
  fields(r.plan, in.into(plan));
  in.get(plan, "hash", r.plan_hash);
  if (!in.fine()) return Error{ErrorCode::bad_record, in.trouble()};
  return DecisionRecord(std::move(r));
}

/// Checks the checksum of a line. Returns what is wrong; empty if the line is unchanged.
std::string trouble_with_seal(std::string_view line) {
  const auto end = line.size() < seal_bytes ? std::string_view() : line.substr(line.size() - seal_bytes);
  if (!end.starts_with(",\"sum\":\"") || !end.ends_with("\"}"))
    return "not a line of a decision log, or a truncated one";
  std::string text(line.substr(0, line.size() - seal_bytes));
  text += '}';
  char sum[17];
  std::snprintf(sum, sizeof sum, "%016llx",
                static_cast<unsigned long long>(rivulet::digest_of(std::as_bytes(std::span(text))).low));
  return end.substr(8, 16) == sum ? "" : "its checksum is wrong: it was changed or damaged";
}

}  // namespace

Result<DecisionRecord> parse_decision_line(std::string_view line) {
  const auto bad = [](std::string why) { return Error{ErrorCode::bad_record, std::move(why)}; };
  if (line.size() > decision_line_max_bytes)
    return bad("longer than " + std::to_string(decision_line_max_bytes) + " bytes");
  if (auto trouble = trouble_with_seal(line); !trouble.empty()) return bad(std::move(trouble));
  const json j = json::parse(line, nullptr, false);
  if (!j.is_object()) return bad("not a JSON object");
  const auto version = j.find("version");
  if (version != j.end() && *version != decision_log_version)
    // The file is untrusted: a value that is not a number may be nested as deep as the line is long.
    return bad("version " + (version->is_number() ? version->dump() : std::string("that is not a number")) +
               ", this build reads " + std::to_string(decision_log_version));
  auto record = version != j.end() ? read_view(j) : read_round(j);
  if (!record) return record;
  // Detects everything the reader ignored, such as unknown members and numbers in another form.
  const auto* view = std::get_if<ViewRecord>(&record.value());
  const std::string again =
      view != nullptr ? decision_line(*view) : decision_line(std::get<RoundRecord>(record.value()));
  if (again != line)
    return bad(
        "this version would write its content differently (unknown members, or numbers in another format)");
  return record;
}

}  // namespace rivulet::runtime
