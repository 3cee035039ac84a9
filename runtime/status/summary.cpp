#include "runtime/status/summary.h"

#include <nlohmann/json.hpp>

namespace rivulet::runtime {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no NaN: encoded as null.
double number(const Json& value) {
  return value.is_null() ? not_measured : value.get<double>();
}

void read(const Json& value, double& out) {
  out = number(value);
}
void read(const Json& value, auto& out) {
  value.get_to(out);
}

Json device_json(const DeviceSummary& d) {
  Json out;
  out["id"] = d.id;
#define RIVULET_VALUE(...)
#define RIVULET_TOTAL(key, ...) out[#key] = d.key;
#include "core/metrics.def"
  out["batch_mean"] = d.batch_mean;
  out["cpu_s"] = d.cpu_s;
  out["max_rss_bytes"] = d.max_rss_bytes;
  out["digest"] = d.digest;
  out["own"] = Json::parse(to_json(d.own));
  if (d.restarts) out["restarts"] = *d.restarts;
  return out;
}

DeviceSummary device_from(const Json& in) {
  DeviceSummary d;
  in.at("id").get_to(d.id);
#define RIVULET_VALUE(...)
#define RIVULET_TOTAL(key, ...) read(in.at(#key), d.key);
#include "core/metrics.def"
  read(in.at("batch_mean"), d.batch_mean);
  read(in.at("cpu_s"), d.cpu_s);
  read(in.at("max_rss_bytes"), d.max_rss_bytes);
  in.at("digest").get_to(d.digest);
  d.own = own_scores_from(in.at("own").dump());
  if (in.contains("restarts")) d.restarts = in.at("restarts").get<std::uint64_t>();
  return d;
}

Summary summary_from(const Json& in) {
  Summary s;
  in.at("rounds").get_to(s.rounds);
  if (!in.at("accuracy").is_null()) s.accuracy = in.at("accuracy").get<double>();
  s.rows_per_s = number(in.at("rows_per_s"));
  for (const auto& [level, seconds] : in.at("time_to_accuracy_s").items()) {
    s.time_to_accuracy_s[level] = number(seconds);
  }
  in.at("parameters_equal").get_to(s.parameters_equal);
  in.at("digests_compared").get_to(s.digests_compared);
  // Derived from the devices, but required.
  static_cast<void>(in.at("sync_bytes_sent").get<std::uint64_t>());
  static_cast<void>(in.at("record_bytes_trained").get<std::uint64_t>());
  if (const Json& ratio = in.at("edge_ratio"); !ratio.is_null()) static_cast<void>(ratio.get<double>());
  for (const Json& device : in.at("devices")) s.devices.push_back(device_from(device));
  return s;
}

}  // namespace

OwnScores Summary::last_rows() const {
  OwnScores all;
  for (const DeviceSummary& d : devices) all = together(all, d.own);
  return all;
}

std::uint64_t Summary::sync_bytes_sent() const {
  std::uint64_t bytes = 0;
  for (const DeviceSummary& d : devices) bytes += d.bytes_sent;
  return bytes;
}

std::uint64_t Summary::record_bytes_trained() const {
  std::uint64_t bytes = 0;
  for (const DeviceSummary& d : devices) bytes += d.record_bytes_trained;
  return bytes;
}

std::optional<double> Summary::edge_ratio() const {
  const std::uint64_t records = record_bytes_trained();
  if (records == 0) return std::nullopt;
  return static_cast<double>(sync_bytes_sent()) / static_cast<double>(records);
}

std::string to_json(const Summary& summary) {
  Json out;
  out["rounds"] = summary.rounds;
  out["accuracy"] = summary.accuracy ? Json(*summary.accuracy) : Json(nullptr);
  out["rows_per_s"] = summary.rows_per_s;
  out["time_to_accuracy_s"] = Json::object();
  for (const auto& [level, seconds] : summary.time_to_accuracy_s) out["time_to_accuracy_s"][level] = seconds;
  out["parameters_equal"] = summary.parameters_equal;
  out["digests_compared"] = summary.digests_compared;
  out["sync_bytes_sent"] = summary.sync_bytes_sent();
  out["record_bytes_trained"] = summary.record_bytes_trained();
  out["edge_ratio"] = summary.edge_ratio() ? Json(*summary.edge_ratio()) : Json(nullptr);
  out["devices"] = Json::array();
  for (const DeviceSummary& device : summary.devices) out["devices"].push_back(device_json(device));
  for (const GroupChange& change : summary.changes)
    out["changes"].push_back(
        {{"at_s", change.at_s}, {"what", change.what}, {"device", change.device}, {"gap_s", change.gap_s}});
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Summary> summary_from_json(const std::string& line) {
  const Json parsed = Json::parse(line, nullptr, false);
  if (!parsed.is_object()) return std::nullopt;
  try {
    return summary_from(parsed);
  } catch (const nlohmann::json::exception&) {  // a missing key, or a wrong type
    return std::nullopt;
  }
}

}  // namespace rivulet::runtime
