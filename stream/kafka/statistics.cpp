#include "stream/kafka/statistics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

namespace rivulet::stream::kafka {
namespace {

using Json = nlohmann::json;

void raise(std::optional<double>& most, std::optional<double> value) {
  if (value) most = std::max(most.value_or(0), *value);
}

/// Extracts the used values while parsing, since most of the text is irrelevant: brokers / NAME / nodeid,
/// state, source, waitresp_cnt, rxidle, rtt, throttle, and topics / NAME / partitions / NUMBER / leader,
/// fetchq_cnt, fetchq_size, ls_offset, hi_offset.
class Reader {
 public:
  Statistics all;
  bool is_object = false;

  // nlohmann's SAX callbacks.
  bool start_object(std::size_t) { return open(true); }
  bool start_array(std::size_t) { return open(false); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    if (depth_ <= names_.size()) names_[depth_ - 1] = name;
    return true;
  }
  bool number_integer(std::int64_t value) { return number(static_cast<double>(value)); }
  bool number_unsigned(std::uint64_t value) { return number(static_cast<double>(value)); }
  bool number_float(double value, const std::string&) { return number(value); }
  bool string(std::string& value) {
    if (!is_at("brokers", 3)) return true;
    if (names_[2] == "state") broker_.up = value == "UP";
    if (names_[2] == "source") broker_.twice = value == "logical";
    return true;
  }
  /// Derives the silent leaders, which requires the whole text.
  Statistics finish() {
    for (auto& [broker, place] : led_)
      if (const auto idle = idle_.find(broker); idle != idle_.end())
        all.silent.push_back({std::move(place.first), place.second, idle->second});
    return std::move(all);
  }
  static bool null() { return true; }
  static bool boolean(bool) { return true; }
  static bool binary(Json::binary_t&) { return true; }
  static bool parse_error(std::size_t, const std::string&, const Json::exception&) { return false; }

 private:
  struct Broker {
    std::optional<double> node;
    bool up = false;
    bool twice = false;  ///< an alias, such as "the coordinator", of another broker
    std::optional<double> round_trip_us;
    std::optional<double> round_trips;
    std::optional<double> throttle_ms;
    std::optional<double> waiting;  ///< unanswered requests
    std::optional<double> idle_us;  ///< since its last answer
  };

  [[nodiscard]] bool is_at(std::string_view top, std::size_t depth) const {
    return depth_ == depth && names_[0] == top;
  }
  bool open(bool object) {
    if (depth_ == 0) is_object = object;
    if (is_at("brokers", 1) && object) all.brokers_up = 0;
    if (is_at("brokers", 2)) broker_ = {};
    if (is_at("topics", 4)) partition_ = {};
    ++depth_;
    if (depth_ <= names_.size()) names_[depth_ - 1].clear();
    return true;
  }
  bool close() {
    --depth_;
    if (is_at("brokers", 2)) take_broker();
    if (is_at("topics", 4) && names_[2] == "partitions") take_partition();
    return true;
  }
  bool number(double value) {
    if (!std::isfinite(value) || value < 0) return true;
    if (is_at("brokers", 3) && names_[2] == "nodeid") broker_.node = value;
    if (is_at("brokers", 3) && names_[2] == "waitresp_cnt") broker_.waiting = value;
    if (is_at("brokers", 3) && names_[2] == "rxidle") broker_.idle_us = value;
    if (is_at("brokers", 4)) number_of_broker(value);
    if (is_at("topics", 5) && names_[2] == "partitions") number_of_partition(value);
    return true;
  }
  void number_of_broker(double value) {
    if (names_[2] == "rtt" && names_[3] == "avg") broker_.round_trip_us = value;
    if (names_[2] == "rtt" && names_[3] == "cnt") broker_.round_trips = value;
    if (names_[2] == "throttle" && names_[3] == "avg") broker_.throttle_ms = value;
  }
  /// All partitions share the client's queue, and each reports its total length.
  void number_of_partition(double value) {
    if (names_[4] == "fetchq_cnt") raise(all.queue_records, value);
    if (names_[4] == "fetchq_size") raise(all.queue_bytes, value);
    if (names_[4] == "leader") partition_.leader = offset_of(value);
    if (names_[4] == "ls_offset") partition_.stable = offset_of(value);
    if (names_[4] == "hi_offset") partition_.end = offset_of(value);
  }
  static std::optional<std::int64_t> offset_of(double value) {
    constexpr double most = 9e15;  // all integers below are exact as double
    return value <= most ? std::optional(static_cast<std::int64_t>(value)) : std::nullopt;
  }
  /// The client gives unknown partitions the number -1.
  void take_partition() {
    std::int32_t number = -1;
    const std::string& name = names_[3];
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
    if (parsed.ec != std::errc() || number < 0) return;
    if (partition_.leader) led_.emplace_back(*partition_.leader, std::pair(names_[1], number));
    if (!partition_.stable || !partition_.end) return;
    if (*partition_.stable < *partition_.end)
      all.blocked.push_back({names_[1], number, *partition_.stable, *partition_.end});
  }
  /// Addresses of brokers that are not identified yet have no node id.
  void take_broker() {
    if (!broker_.node || *broker_.node > std::numeric_limits<std::int32_t>::max() || broker_.twice) return;
    const auto node = static_cast<std::int64_t>(*broker_.node);
    if (!broker_.up)
      idle_[node] = std::numeric_limits<double>::infinity();
    else if (broker_.waiting.value_or(0) > 0 && broker_.idle_us)
      idle_[node] = *broker_.idle_us / 1e6;
    if (broker_.up) all.brokers_up = all.brokers_up.value_or(0) + 1;
    if (broker_.throttle_ms) raise(all.throttle_seconds, *broker_.throttle_ms / 1e3);
    const bool answered = broker_.round_trip_us && broker_.round_trips.value_or(0) > 0;
    if (answered && all.answers.size() < Statistics::brokers_shown)
      all.answers.push_back({static_cast<std::int32_t>(*broker_.node), *broker_.round_trip_us / 1e6});
  }

  std::size_t depth_ = 0;             ///< open objects and arrays
  std::array<std::string, 5> names_;  ///< current member in each of them
  Broker broker_;
  struct Offsets {
    std::optional<std::int64_t> leader;
    std::optional<std::int64_t> stable;
    std::optional<std::int64_t> end;
  } partition_;
  std::map<std::int64_t, double> idle_;  ///< seconds, for brokers that owe an answer
  std::vector<std::pair<std::int64_t, std::pair<std::string, std::int32_t>>> led_;  ///< leader: partition
};

}  // namespace

std::optional<Statistics> Statistics::parse(std::string_view json) {
  if (json.size() > bytes_most) return std::nullopt;
  Reader reader;
  if (!Json::sax_parse(json, &reader) || !reader.is_object) return std::nullopt;
  return reader.finish();
}

std::optional<int> StatisticsMeters::show(std::string_view json) noexcept {
  auto now = Statistics::parse(json);
  if (!now) return std::nullopt;
  blocked_ = std::move(now->blocked);
  silent_ = std::move(now->silent);
  show(brokers_up_, "kafka_brokers_up", now->brokers_up);
  show(throttle_seconds_, "kafka_throttle_seconds", now->throttle_seconds);
  show(queue_records_, "kafka_fetch_queue_records", now->queue_records);
  show(queue_bytes_, "kafka_fetch_queue_bytes", now->queue_bytes);
  show_answers(now->answers);
  return now->brokers_up;
}

void StatisticsMeters::show(Gauge*& gauge, const char* name, const std::optional<double>& value) {
  if (!value) return;
  if (gauge == nullptr) gauge = &metrics_.gauge(name);
  gauge->set(*value);
}

void StatisticsMeters::show_answers(const std::vector<Statistics::Answers>& answers) {
  std::set<std::int32_t> heard;
  for (const auto& [broker, seconds] : answers) {
    auto& gauge = round_trips_[broker];
    if (gauge == nullptr)
      gauge = &metrics_.gauge("kafka_broker_rtt_seconds", {{"broker", std::to_string(broker)}});
    gauge->set(seconds);
    heard.insert(broker);
  }
  std::erase_if(round_trips_, [&](const auto& one) {
    if (heard.contains(one.first)) return false;
    metrics_.remove("kafka_broker_rtt_seconds", {{"broker", std::to_string(one.first)}});
    return true;
  });
}

}  // namespace rivulet::stream::kafka
