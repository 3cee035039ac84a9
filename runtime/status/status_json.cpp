#include "runtime/status/status_json.h"

#include <sys/resource.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/record.h"
#include "runtime/process/topic_name.h"

namespace rivulet::runtime {
namespace {

using Json = nlohmann::ordered_json;

/// A negative value means unknown.
Json known(std::int64_t value) {
  return value < 0 ? Json(nullptr) : Json(value);
}

template <class Value>
Json json_of(const Value& value) {
  return value.load();  // NaN becomes null
}
Json json_of(const Latest<std::int64_t>& value) {
  return known(value);
}
template <class E, std::size_t n>
Json json_of(const CountBy<E, n>& counts) {
  Json out = Json::object();
  counts.each([&](std::string_view name, std::uint64_t count) { out[std::string(name)] = count; });
  return out;
}

void add_values(Json& out, const NodeStatus& s) {
#define RIVULET_VALUE(key, ...) out[#key] = json_of(s.key);
#include "core/metrics.def"
}

Json partitions_json(const NodeStatus& s) {
  Json out = Json::array();
  for (const PartitionStatus& p : s.partitions()) {
    Json one;
    one["topic"] = p.topic;
    one["partition"] = p.partition;
    one["state"] = p.state;
    one["next_offset"] = known(p.next_offset);
    one["low_watermark"] = known(p.low_watermark);
    one["high_watermark"] = known(p.high_watermark);
    one["skipped"] = p.skipped;
    one["reason"] = p.reason.empty() ? Json(nullptr) : Json(p.reason);
    out.push_back(std::move(one));
  }
  return out;
}

void add_stream(Json& out, const NodeStatus& s) {
  const std::string trouble = s.source_trouble();
  out["source_trouble"] = trouble.empty() ? Json(nullptr) : Json(trouble);
  const std::string control = s.control_trouble();
  out["control_trouble"] = control.empty() ? Json(nullptr) : Json(control);
  out["partitions"] = partitions_json(s);
  out["unclaimed_partitions"] = s.unclaimed();
}

/// Readiness and findings.
void add_health(Json& out, const Health& health) {
  out["ready"] = health.ready();
  auto findings = Json::array();
  for (const Finding& finding : health.findings)
    findings.push_back({{"condition", std::string(finding.condition)},
                        {"grade", std::string(name_of(finding.grade))},
                        {"phrase", finding.phrase}});
  out["health"] = std::move(findings);
}

/// Events of the last minutes, oldest first. The history has one sample per second.
Json marks_json(const History* history) {
  auto out = Json::array();
  if (history == nullptr) return out;
  for (const History::Mark& mark : history->marks())
    out.push_back({{"seconds_ago", mark.looks_ago}, {"phrase", mark.phrase}});
  return out;
}

/// The agreed ledger of each partition of this device: offsets and counts of rows.
Json ledger_json(const NodeStatus& s, const std::vector<std::string>& topics) {
  auto out = Json::array();
  for (const auto& [id, p] : s.ledger()) {
    auto dropped = Json::object();
    for (std::size_t i = 0; i < drop_reasons; ++i)
      if (p.dropped.at(i) > 0) dropped[std::string(name_of(static_cast<DropReason>(i)))] = p.dropped.at(i);
    out.push_back({{"topic", topic_of(id, topics)},
                   {"partition", id.partition},
                   {"start", p.start.offset},
                   {"next", p.next.offset},
                   {"rows_trained", p.trained},
                   {"rows_dropped", dropped},
                   {"rows_shared", p.shared},
                   {"holes", p.holes},
                   {"balanced", p.adds_up()}});
  }
  return out;
}

/// Returns the peak resident memory of this program. getrusage() would include the time before exec().
std::uint64_t max_rss_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace

std::string status_json(const NodeStatus& status, const NodeStatusText& text) {
  Json out;
  out["id"] = text.id;
  out["job"] = text.job;
  out["model"] = text.model;
  out["state"] = std::string(name_of(status.state.load()));
  out["phrase"] = status.phrase();
  out["view_ended"] = status.view_ended();
  add_health(out, status.health());
  out["digest"] = status.digest();
  add_values(out, status);
  out["own"] = Json::parse(to_json(status.own_scores()));
  out["marks"] = marks_json(status.history());
  add_stream(out, status);
  out["ledger"] = ledger_json(status, text.topics);
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);  // a phrase may quote any bytes
}

DeviceSummary make_device_summary(const NodeStatus& s, const std::string& id) {
  DeviceSummary out;
  out.id = id;
#define RIVULET_VALUE(...)
#define RIVULET_TOTAL(key, ...) out.key = s.key.load();
#include "core/metrics.def"
  const auto batches = s.batches.load();
  out.batch_mean = batches == 0 ? 0 : static_cast<double>(out.rows_trained) / static_cast<double>(batches);
  out.cpu_s = process_cpu_seconds();
  out.max_rss_bytes = max_rss_bytes();
  out.digest = s.digest();
  out.own = s.own_scores();
  return out;
}

}  // namespace rivulet::runtime
