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

/// Negative stands for "not measured" in NodeStatus, null in JSON.
template <class T>
Json known(T value) {
  return value < T{0} ? Json(nullptr) : Json(value);
}

Json dropped_json(const NodeStatus& s) {
  Json out = Json::object();
  for (std::size_t i = 0; i < drop_reasons; ++i) {
    out[std::string(name_of(static_cast<DropReason>(i)))] = s.rows_dropped[i].load();
  }
  return out;
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
  out["records_consumed"] = s.records_consumed.load();
  out["bytes_consumed"] = s.bytes_consumed.load();
  out["rows_consumed"] = s.rows_consumed.load();
  out["rows_waiting"] = s.rows_waiting.load();
  out["rows_trained"] = s.rows_trained.load();
  out["rows_dropped"] = dropped_json(s);
  out["stream_rate"] = s.stream_rate.load();
  out["lag_records"] = known(s.lag_records.load());
  const std::string trouble = s.source_trouble();
  out["source_trouble"] = trouble.empty() ? Json(nullptr) : Json(trouble);
  const std::string control = s.control_trouble();
  out["control_trouble"] = control.empty() ? Json(nullptr) : Json(control);
  out["partitions"] = partitions_json(s);
}

/// Whether it is of use, and what is in the way.
void add_health(Json& out, const Health& health) {
  out["ready"] = health.ready();
  auto findings = Json::array();
  for (const Finding& finding : health.findings)
    findings.push_back({{"condition", std::string(finding.condition)},
                        {"grade", std::string(name_of(finding.grade))},
                        {"phrase", finding.phrase}});
  out["health"] = std::move(findings);
}

/// What happened in the last minutes, oldest first: a look at the history is made each second.
Json marks_json(const History* history) {
  auto out = Json::array();
  if (history == nullptr) return out;
  for (const History::Mark& mark : history->marks())
    out.push_back({{"seconds_ago", mark.looks_ago}, {"phrase", mark.phrase}});
  return out;
}

/// Per partition of this device, as the group has agreed on it: offsets and what became of the rows.
Json books_json(const NodeStatus& s, const std::vector<std::string>& topics) {
  auto out = Json::array();
  for (const auto& [id, p] : s.books()) {
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

void add_group(Json& out, const NodeStatus& s) {
  out["view"] = s.view.load();
  out["rank"] = s.rank.load();
  out["world"] = s.world.load();
  out["rounds"] = s.rounds.load();
  out["steps"] = s.steps.load();
  out["batches"] = s.batches.load();
  out["group_rows"] = s.group_rows.load();
  out["batch_rows"] = s.batch_rows.load();
  out["loss"] = s.loss.load();  // null while it is no number
  out["accuracy"] = known(s.accuracy.load());
  out["held_out_accuracy"] = known(s.held_out_accuracy.load());
  out["unclaimed_partitions"] = s.unclaimed();
}

void add_cost(Json& out, const NodeStatus& s) {
  out["compute_s"] = s.compute_s.load();
  out["wait_s"] = s.wait_s.load();
  out["sync_s"] = s.sync_s.load();
  out["first_step_s"] = known(s.first_step_s.load());
  out["seconds_training"] = s.seconds_training.load();
  out["bytes_sent"] = s.bytes_sent.load();
  out["bytes_received"] = s.bytes_received.load();
  auto sent_for = Json::object();
  for (std::size_t kind = 0; kind < sync::traffic_kinds; ++kind)
    sent_for[std::string(name_of(static_cast<sync::Traffic>(kind)))] = s.bytes_sent_for[kind].load();
  out["bytes_sent_for"] = std::move(sent_for);
  out["own_steps"] = s.own_steps.load();
  out["keep_ratio"] = s.keep_ratio.load();
  out["record_bytes_trained"] = s.record_bytes_trained.load();
  out["digests_compared"] = s.digests_compared.load();
  out["early_payloads"] = {{"used", s.early_used.load()}, {"wasted", s.early_wasted.load()}};
  out["digests_different"] = s.digests_different.load();
  out["digest"] = s.digest();
  out["ingest_beat_ns"] = s.ingest_beat_ns.load();
  out["train_beat_ns"] = s.train_beat_ns.load();
}

/// The kernel's high-water mark of this program. getrusage() would count what ran before exec(), too.
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
  add_health(out, status.health());
  add_group(out, status);
  out["own"] = Json::parse(to_json(status.own_scores()));
  out["marks"] = marks_json(status.history());
  add_stream(out, status);
  out["ledger"] = books_json(status, text.topics);
  add_cost(out, status);
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);  // a phrase may quote anything
}

DeviceSummary make_device_summary(const NodeStatus& s, const std::string& id) {
  DeviceSummary out;
  out.id = id;
  out.rows_consumed = s.rows_consumed.load();
  out.rows_trained = s.rows_trained.load();
  out.rows_waiting = s.rows_waiting.load();
  for (std::size_t i = 0; i < drop_reasons; ++i) {
    if (const auto rows = s.rows_dropped[i].load(); rows > 0) {
      out.rows_dropped[std::string(name_of(static_cast<DropReason>(i)))] = rows;
    }
  }
  out.stream_rate = s.stream_rate.load();
  const auto batches = s.batches.load();
  out.batch_mean = batches == 0 ? 0 : static_cast<double>(out.rows_trained) / static_cast<double>(batches);
  out.compute_s = s.compute_s.load();
  out.wait_s = s.wait_s.load();
  out.sync_s = s.sync_s.load();
  out.cpu_s = process_cpu_seconds();
  out.bytes_sent = s.bytes_sent.load();
  out.bytes_received = s.bytes_received.load();
  out.record_bytes_trained = s.record_bytes_trained.load();
  out.max_rss_bytes = max_rss_bytes();
  out.first_step_s = s.first_step_s.load();
  out.digest = s.digest();
  out.own = s.own_scores();
  return out;
}

}  // namespace rivulet::runtime
