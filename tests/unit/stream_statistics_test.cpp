// Statistics of a Kafka client: recorded ones, and invalid ones.
#include "stream/kafka/statistics.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/metrics.h"
#include "tests/support/counting_metrics.h"
#include "tests/support/places.h"
#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::stream::kafka;
using namespace rivulet::testing;

namespace {

/// Of librdkafka 2.0.2: two brokers, three partitions of which two are read, 1991 records in the queue.
std::string recorded() {
  return read_file(source_path("tests/support/statistics/two_brokers.json"));
}

/// The recorded ones with one changed value.
std::string with(const std::string& place, const nlohmann::json& value) {
  auto all = nlohmann::json::parse(recorded());
  all[nlohmann::json::json_pointer(place)] = value;
  return all.dump();
}

const std::string first_broker = "/brokers/127.0.0.1:42853~11";
const std::string second_broker = "/brokers/127.0.0.1:40915~12";

}  // namespace

TEST_CASE("Statistics: brokers, round trips and the queue of a real client, each counted once") {
  const auto told = Statistics::parse(recorded());
  REQUIRE(told);
  CHECK(told->brokers_up == 2);  // "GroupCoordinator" is one of them again
  REQUIRE(told->answers.size() == 2);
  CHECK(told->answers[0].broker == 2);
  CHECK(told->answers[0].mean_seconds == doctest::Approx(0.125181));
  CHECK(told->answers[1].broker == 1);
  CHECK(told->answers[1].mean_seconds == doctest::Approx(9e-6));
  CHECK(told->throttle_seconds == 0);
  CHECK(told->queue_records == 1991);  // both partitions report the length of their common queue
  CHECK(told->queue_bytes == 19910);
}

TEST_CASE("Statistics: a broker that is down, that does not answer, that throttles") {
  CHECK(Statistics::parse(with(first_broker + "/state", "DOWN"))->brokers_up == 1);
  CHECK(Statistics::parse(with(first_broker + "/rtt/cnt", 0))->answers.size() == 1);
  CHECK(Statistics::parse(with(first_broker + "/nodeid", -1))->brokers_up == 1);  // only an address yet
  CHECK(Statistics::parse(with(second_broker + "/throttle/avg", 250))->throttle_seconds == 0.25);
  CHECK(Statistics::parse(R"({"brokers": {}})")->brokers_up == 0);
}

TEST_CASE("Statistics: partitions whose leader owes an answer, or has no connection, are found") {
  const auto usual = Statistics::parse(recorded());
  REQUIRE(usual->silent.size() == 3);  // a fetch is in flight, for half a second at most
  CHECK(usual->silent[1].topic == "t");
  CHECK(usual->silent[1].partition == 1);
  CHECK(usual->silent[1].seconds == doctest::Approx(0.497996));
  CHECK(Statistics::parse(with(second_broker + "/waitresp_cnt", 0))->silent.empty());
  const auto down = Statistics::parse(with(second_broker + "/state", "DOWN"));
  REQUIRE(down->silent.size() == 3);
  CHECK(down->silent[0].seconds > 1e9);
  const auto elsewhere = Statistics::parse(with("/topics/t/partitions/0/leader", 1));
  REQUIRE(elsewhere->silent.size() == 2);  // no request is pending at broker 1
  CHECK(elsewhere->silent[0].partition == 1);
}

TEST_CASE("Statistics: what is missing or of another kind is absent, and the rest is read") {
  for (const nlohmann::json& wrong :
       {nlohmann::json(), nlohmann::json("x"), nlohmann::json(-1), nlohmann::json(1e300),
        nlohmann::json({1, 2}), nlohmann::json({{"a", 1}})}) {
    CAPTURE(wrong.dump());
    CHECK(Statistics::parse(with(first_broker + "/nodeid", wrong))->answers.size() == 1);
    CHECK(Statistics::parse(with(first_broker + "/rtt", wrong))->answers.size() == 1);
    CHECK(Statistics::parse(with(first_broker, wrong))->answers.size() == 1);
    CHECK(Statistics::parse(with("/brokers", wrong))->answers.empty());
    CHECK(Statistics::parse(with("/brokers", wrong))->queue_records == 1991);
    CHECK(Statistics::parse(with("/topics", wrong))->brokers_up == 2);
    CHECK_FALSE(Statistics::parse(with("/topics", wrong))->queue_records);
    CHECK_FALSE(Statistics::parse(with("/topics/t/partitions", wrong))->queue_bytes);
  }
  for (const char* none : {"", "null", "[]", "7", "{", "\"brokers\"", "{\"brokers\": {\"a\": "}) {
    CAPTURE(none);
    const auto told = Statistics::parse(none);
    CHECK_FALSE(told);
  }
  const char* list = R"({"topics": {"t": {"partitions": {"0": {"fetchq_cnt": 5}, "1": [99]}}}})";
  CHECK(Statistics::parse(list)->queue_records == 5);
  const auto empty = Statistics::parse("{}");
  REQUIRE(empty);
  CHECK_FALSE(empty->brokers_up);
  CHECK_FALSE(empty->throttle_seconds);
  CHECK_FALSE(empty->queue_records);
}

TEST_CASE(
    "Statistics: text that was cut or has a byte too many or another one is read or refused, never half") {
  const std::string whole = recorded();
  for (std::size_t length = 0; length + 1 < whole.size(); length += 61)
    CHECK_FALSE(Statistics::parse(std::string_view(whole).substr(0, length)));
  for (std::size_t at = 0; at < whole.size(); at += 17)
    for (const char byte : {'\0', '"', '}', '9', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = byte;
      static_cast<void>(Statistics::parse(damaged));
    }
  CHECK_FALSE(Statistics::parse(std::string(100'000, '[')));
  CHECK_FALSE(Statistics::parse(whole + "{"));
  CHECK(Statistics::parse(whole + std::string(1000, ' ')));
  CHECK_FALSE(Statistics::parse(whole + std::string(Statistics::bytes_most, ' ')));
}

TEST_CASE("Statistics: as many brokers are told apart as there may be series") {
  nlohmann::json all = {{"brokers", nlohmann::json::object()}};
  for (int i = 0; i < 1000; ++i)
    all["brokers"]["evil \"name\"\n" + std::to_string(i)] = {
        {"nodeid", i}, {"state", "UP"}, {"rtt", {{"avg", 1000}, {"cnt", 1}}}};
  const auto told = Statistics::parse(all.dump());
  REQUIRE(told);
  CHECK(told->brokers_up == 1000);
  CHECK(told->answers.size() == Statistics::brokers_shown);
}

TEST_CASE("Statistics: a series begins with what is known, and that of a broker ends with its answers") {
  CountingMetrics metrics;
  StatisticsMeters meters(metrics);
  meters.show("{}");
  meters.show("not JSON");
  for (const char* name : {"kafka_brokers_up", "kafka_throttle_seconds", "kafka_fetch_queue_records",
                           "kafka_fetch_queue_bytes", "kafka_broker_rtt_seconds/1"})
    CHECK_FALSE(metrics.has(name));
  meters.show(recorded());
  CHECK(metrics["kafka_brokers_up"] == 2);
  CHECK(metrics["kafka_fetch_queue_bytes"] == 19910);
  CHECK(metrics["kafka_broker_rtt_seconds/1"] == doctest::Approx(9e-6));
  CHECK(metrics["kafka_broker_rtt_seconds/2"] == doctest::Approx(0.125181));
  const int at_first = metrics.asked();
  meters.show("not JSON");
  meters.show(recorded());
  CHECK(metrics.asked() == at_first);
  CHECK(metrics.has("kafka_broker_rtt_seconds/1"));
  meters.show(with(first_broker + "/rtt/cnt", 0));
  CHECK_FALSE(metrics.has("kafka_broker_rtt_seconds/1"));
  CHECK(metrics.has("kafka_broker_rtt_seconds/2"));
  meters.show(recorded());
  CHECK(metrics.has("kafka_broker_rtt_seconds/1"));
}

TEST_CASE("Statistics: a partition whose last stable offset lies before the end of its log is held back") {
  CHECK(Statistics::parse(recorded())->blocked.empty());
  const auto told = Statistics::parse(with("/topics/t/partitions/1/ls_offset", 990));
  REQUIRE(told);
  REQUIRE(told->blocked.size() == 1);
  CHECK(told->blocked[0].topic == "t");
  CHECK(told->blocked[0].partition == 1);
  CHECK(told->blocked[0].from == 990);
  CHECK(told->blocked[0].end == 1000);
  for (const nlohmann::json& wrong : {nlohmann::json("x"), nlohmann::json(-1001), nlohmann::json(1e300)})
    CHECK(Statistics::parse(with("/topics/t/partitions/1/ls_offset", wrong))->blocked.empty());
}
