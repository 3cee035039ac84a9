#include "runtime/status/page/node_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/status/health/conditions.h"

namespace rivulet::runtime {
namespace {

using ReadJson = nlohmann::ordered_json;

/// Returns a member of an object; null if absent.
const ReadJson& member_of(const ReadJson& object, const char* name) {
  static const ReadJson nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

/// Returns an array member; empty if absent.
const ReadJson& array_of(const ReadJson& object, const char* name) {
  static const ReadJson none = ReadJson::array();
  const ReadJson& value = member_of(object, name);
  return value.is_array() ? value : none;
}

std::string text_in(const ReadJson& object, const char* name) {
  const ReadJson& value = member_of(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

/// Doubles represent every integer below this exactly. Larger values are clamped to it and fit their column.
constexpr double most_shown = 9e15;

NodeReport::Number number_in(const ReadJson& object, const char* name) {
  const ReadJson& value = member_of(object, name);
  return value.is_number() ? NodeReport::Number(std::clamp(value.get<double>(), -most_shown, most_shown))
                           : std::nullopt;
}

NodeReport::Whole whole_in(const ReadJson& object, const char* name) {
  const auto number = number_in(object, name);
  return number ? NodeReport::Whole(std::llround(*number)) : std::nullopt;
}

void read(const ReadJson& object, const char* name, NodeReport::Number& out) {
  out = number_in(object, name);
}

void read(const ReadJson& object, const char* name, NodeReport::Whole& out) {
  out = whole_in(object, name);
}

void read(const ReadJson& object, const char* name, NodeReport::Counts& out) {
  const ReadJson& counts = member_of(object, name);
  if (!counts.is_object()) return;
  for (const auto& [key, count] : counts.items())
    if (count.is_number_unsigned() && count.get<std::uint64_t>() > 0)
      out.emplace_back(key, std::min(count.get<std::uint64_t>(), static_cast<std::uint64_t>(most_shown)));
}

void read_device(const ReadJson& s, NodeReport& out) {
  out.id = text_in(s, "id");
  out.job = text_in(s, "job");
  out.model = text_in(s, "model");
  out.state = text_in(s, "state");
  out.phrase = text_in(s, "phrase");
  out.view_ended = text_in(s, "view_ended");
  for (const ReadJson& finding : array_of(s, "health")) {
    const auto phrase = text_in(finding, "phrase");
    if (text_in(finding, "grade") == "impaired")
      out.impaired.push_back(phrase);
    else if (!is_phrase_of_state(text_in(finding, "condition")))
      out.trouble += (out.trouble.empty() ? "" : "; ") + phrase;
  }
  out.digest = text_in(s, "digest");
#define RIVULET_VALUE(key, ...) read(s, #key, out.key);
#include "core/metrics.def"
}

void read_own(const ReadJson& s, NodeReport::Own& out) {
  out.rows = whole_in(s, "rows");
  out.loss = number_in(s, "loss");
  out.accuracy = number_in(s, "accuracy");
  out.largest_class = text_in(s, "largest_class");
  out.largest_share = number_in(s, "largest_class_share");
  out.mean_absolute_error = number_in(s, "mean_absolute_error");
  out.r2 = number_in(s, "r2");
  for (const ReadJson& c : array_of(s, "classes"))
    out.classes.push_back(
        {text_in(c, "class"), whole_in(c, "rows"), number_in(c, "recall"), number_in(c, "precision")});
}

void read_partitions(const ReadJson& s, NodeReport& out) {
  for (const ReadJson& p : array_of(s, "unclaimed_partitions"))
    if (p.is_string()) out.unclaimed.push_back(p.get<std::string>());
  for (const ReadJson& p : array_of(s, "partitions")) {
    out.partitions.push_back({text_in(p, "topic"), text_in(p, "state"), text_in(p, "reason"),
                              whole_in(p, "partition"), whole_in(p, "next_offset"),
                              whole_in(p, "high_watermark"), whole_in(p, "skipped")});
  }
}

NodeReport::Member read_member(const ReadJson& d) {
  return {text_in(d, "id"),
          number_in(d, "stream_rows_per_s"),
          number_in(d, "weight"),
          number_in(d, "wait_s"),
          number_in(d, "compute_s"),
          number_in(d, "ready_before_last_s"),
          whole_in(d, "rows_waiting"),
          whole_in(d, "rows"),
          whole_in(d, "next_rows")};
}

void read_group(const ReadJson& group, NodeReport& out) {
  const ReadJson& story = member_of(group, "story");
  out.group_view = whole_in(group, "view");
  out.reported_round = whole_in(story, "round");
  out.ready_last = text_in(story, "ready_last");
  for (const ReadJson& sentence : array_of(story, "said"))
    if (sentence.is_string()) out.detail.push_back(sentence.get<std::string>());
  for (const ReadJson& d : array_of(story, "devices")) out.members.push_back(read_member(d));
  for (const ReadJson& r : array_of(group, "rounds"))
    out.last_rounds.push_back({text_in(r, "mode"), text_in(r, "why"), text_in(r, "ready_last"),
                               whole_in(r, "step"), whole_in(r, "rows")});
}

}  // namespace

std::optional<NodeReport> read_node_report(const std::string& status_json, const std::string& group_json) {
  const ReadJson status = ReadJson::parse(status_json, nullptr, false);
  const ReadJson group = ReadJson::parse(group_json, nullptr, false);
  if (!member_of(status, "id").is_string() || !group.is_object()) return std::nullopt;
  NodeReport out;
  read_device(status, out);
  read_own(member_of(status, "own"), out.own);
  read_partitions(status, out);
  read_group(group, out);
  return out;
}

bool trains(const NodeReport& r) {
  return r.world.value_or(0) > 0 && r.phrase.empty() && r.trouble.empty() &&
         (r.state == "training" || r.state == "waiting");
}

std::string state_and_phrase(const NodeReport& r) {
  std::string_view phrase = r.phrase;
  if (r.trouble.empty()) {
    if (phrase.empty()) return r.state;
    return phrase.starts_with(r.state) ? r.phrase : r.state + ": " + r.phrase;
  }
  if (phrase.starts_with(r.state + ": ")) phrase.remove_prefix(r.state.size() + 2);
  std::string out = "not ready: " + r.trouble;
  if (!phrase.empty()) out.append("; ").append(phrase);
  return out;
}

std::string last_change(const NodeReport& r) {
  if (r.view_ended.empty() || !r.view_gap_s) return r.view_ended;
  const double gap = *r.view_gap_s;
  return fmt::format("{}; {:.{}f} s without a step", r.view_ended, gap, gap < 1 ? 2 : gap < 10 ? 1 : 0);
}

std::string sync_interval_of(const NodeReport& r) {
  if (!r.local_steps) return "";
  if (*r.local_steps == 0) return "after each batch";
  return *r.local_steps == 1 ? "after each step" : fmt::format("every {} steps", *r.local_steps);
}

std::string sync_share_of(const NodeReport& r) {
  if (!r.keep_ratio) return "";
  return *r.keep_ratio >= 1 ? "all parameters"
                            : fmt::format("{:.3g} % of the parameters", 100 * *r.keep_ratio);
}

std::string sync_of(const NodeReport& r) {
  const auto when = sync_interval_of(r);
  const auto share = sync_share_of(r);
  return when.empty() || share.empty() ? "" : when + ", on " + share;
}

NodeReport::Number edge_ratio(const NodeReport& r) {
  if (r.record_bytes_trained.value_or(0) == 0 || !r.bytes_sent) return std::nullopt;
  return static_cast<double>(*r.bytes_sent) / static_cast<double>(*r.record_bytes_trained);
}

std::uint64_t refused_rows(const NodeReport& r) {
  std::uint64_t all = 0;
  for (const auto& [reason, rows] : r.rows_dropped) all += rows;
  return all;
}

}  // namespace rivulet::runtime
