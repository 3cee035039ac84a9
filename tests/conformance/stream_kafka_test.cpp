#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include "stream/kafka/producer.h"
#include "tests/support/kafka_source_fixture.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::stream;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

/// Within two reports of the client's statistics, which repeat it if an answer was late.
bool comes(Opened& opened, const std::function<bool()>& what) {
  return wait_until(
      [&] {
        static_cast<void>(opened.source->poll(0, 10ms));
        return what();
      },
      11s);
}

}  // namespace

TEST_CASE("Embedded broker: listens on loopback only") {
  const auto broker = start_broker({{"t", 1}});
  const std::string servers = broker->bootstrap_servers();
  CHECK(servers.starts_with("127.0.0.1:"));
  std::ostringstream port;
  port << std::uppercase << std::hex << std::stoi(servers.substr(servers.find(':') + 1));
  int listening = 0;
  for (const auto* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      std::istringstream fields(line);
      std::string number;
      std::string local;
      std::string remote;
      std::string state;
      fields >> number >> local >> remote >> state;
      if (state != "0A" || !local.ends_with(":" + std::string(4 - port.str().size(), '0') + port.str()))
        continue;
      ++listening;
      CHECK(local.starts_with("0100007F:"));
    }
  }
  CHECK(listening == 1);
}

TEST_CASE("Kafka source: what does not exist is named within the deadline, and is not created by asking") {
  const auto broker = start_broker({{"t", 4}});
  const std::string servers = broker->bootstrap_servers();
  for (int attempt = 0; attempt < 2; ++attempt) {
    Opened topic(config_for(servers, "nowhere"));
    CHECK(topic.read(1, 5s).empty());
    REQUIRE(topic.errors.size() == 1);
    CHECK(topic.errors[0].code == ErrorCode::unavailable);
    CHECK(topic.errors[0].message == "topic \"nowhere\" does not exist on " + servers);
    CHECK(partition_count({{"bootstrap.servers", servers}}, "nowhere", 2s).error().message ==
          "topic \"nowhere\" does not exist on " + servers);
  }
  Opened partition(config_for(servers, "t", 7));
  CHECK(partition.read(1, 5s).empty());
  REQUIRE(partition.errors.size() == 1);
  CHECK(partition.errors[0].code == ErrorCode::unavailable);
  CHECK(contains(partition.errors[0].message,
                 "topic \"t\", partition 7 does not exist: the topic has 4 partitions, 0 to 3"));
  CHECK(partition_count({{"bootstrap.servers", servers}}, "t", 2s).value() == 4);
}

TEST_CASE("Kafka source: a partition that an earlier run read and that is gone ends no reader of another") {
  const auto broker = start_broker({{"t", 1}});
  REQUIRE(testing::produce(broker->bootstrap_servers(), "t", numbered(0, 3)));
  auto config = config_for(broker->bootstrap_servers(), "t");
  config.partitions.push_back({"t", {0, 7}});
  config.resume[{0, 7}] = 5;
  Opened opened(config);
  CHECK(opened.read(3, 5s).size() == 3);
  CHECK(opened.read(1, 1s).empty());  // past the time limit for finding partitions
  CHECK(opened.errors.empty());
  CHECK(contains(opened.source->partitions()[1].unreached, "topic \"t\", partition 7 does not exist"));
  config.resume.clear();
  Opened never(config);
  never.read(4, 1s);
  REQUIRE(never.errors.size() == 1);
  CHECK(contains(never.errors[0].message, "topic \"t\", partition 7 does not exist"));
}

TEST_CASE("Kafka source: a topic that is made while the source waits for it is found") {
  // The embedded broker creates a topic, with four partitions, when a producer names it.
  const auto broker = start_broker({{"other", 1}});
  auto config = config_for(broker->bootstrap_servers(), "late");
  config.open_deadline = 10s;
  Opened opened(config);
  CHECK(opened.read(1, 300ms).empty());
  CHECK(opened.errors.empty());
  REQUIRE(testing::produce(broker->bootstrap_servers(), "late", numbered(0, 1)));
  CHECK(opened.read(1, 5s) == std::vector<std::string>{"0"});
}

TEST_CASE("Kafka source: a partition without a leader is waited for, and named when the wait is over") {
  const auto broker = start_broker({{"t", 2}});
  REQUIRE(testing::produce(broker->bootstrap_servers(), "t", numbered(0, 1)));
  broker->set_leaderless("t", 0, true);
  auto config = config_for(broker->bootstrap_servers(), "t");
  Opened hopeless(config);
  CHECK(hopeless.read(1, 6s).empty());
  REQUIRE(hopeless.errors.size() == 1);
  CHECK(hopeless.errors[0].code == ErrorCode::unavailable);
  CHECK(contains(hopeless.errors[0].message, "topic \"t\", partition 0: no leader answers"));
  config.open_deadline = 10s;
  Opened patient(config);
  CHECK(patient.read(1, 600ms).empty());
  CHECK(patient.errors.empty());
  broker->set_leaderless("t", 0, false);
  CHECK(patient.read(1, 5s) == std::vector<std::string>{"0"});
}

TEST_CASE("Kafka source: no broker is an error within the deadline and names the address") {
  Opened opened(config_for("127.0.0.1:1", "t"));
  const TimePoint start = opened.clock.now();
  CHECK(opened.read(1, 10s).empty());
  CHECK(opened.clock.now() - start < testing::deadline_slack * 5s);
  REQUIRE(opened.errors.size() == 1);
  CHECK(opened.errors[0].code == ErrorCode::unavailable);
  CAPTURE(opened.errors[0].message);
  CHECK(contains(opened.errors[0].message, "no broker answered at 127.0.0.1:1 within 2 s"));
  CHECK(contains(opened.errors[0].message, "Connection refused"));
  CHECK(opened.metrics["kafka_errors_total/transport"] > 0);
}

TEST_CASE("Kafka source: properties are refused at once, with librdkafka's words") {
  const RealClock clock;
  NullMetrics metrics;
  auto config = config_for("127.0.0.1:1", "t");
  config.properties.emplace_back("no.such.thing", "1");
  config.properties.emplace_back("fetch.wait.max.ms", "soon");
  const auto source = open_kafka_source(config, clock, metrics);
  REQUIRE_FALSE(source);
  CHECK(source.error().code == ErrorCode::invalid_config);
  CHECK(contains(source.error().message, "No such configuration property: \"no.such.thing\""));
  CHECK(contains(source.error().message, "fetch.wait.max.ms"));
  config.properties = {{"group.id", "x"}};
  CHECK(contains(open_kafka_source(config, clock, metrics).error().message, "no bootstrap.servers"));
}

TEST_CASE("Kafka properties: librdkafka judges names, values, and what does not go together") {
  const auto judge = [](const Properties& properties) {
    const auto wrong = check_kafka_properties(properties);
    return wrong.empty() ? std::string() : wrong[0];
  };
  CHECK(judge({{"bootstrap.servers", "a:1"},
               {"acks", "all"},
               {"auto.offset.reset", "error"},
               {"max.in.flight", "3"}})
            .empty());
  CHECK(check_kafka_properties({{"a.b", "1"}, {"linger.ms", "x"}, {"acks", "all"}}).size() == 2);
  CHECK(contains(judge({{"session.timeout", "5"}}), "No such configuration property"));
  CHECK(contains(judge({{"socket.timeout.ms", "5"}}), "socket.timeout.ms"));
  CHECK(contains(judge({{"security.protocol", "tls"}}), "security.protocol"));
  CHECK(contains(judge({{"security.protocol", "ssl"}, {"ssl.ca.location", "/no/such/file.pem"}}),
                 "ssl.ca.location"));
  CHECK_FALSE(judge({{"security.protocol", "sasl_plaintext"}, {"sasl.mechanisms", "MAGIC"}}).empty());
  CHECK(kafka_client_version().find("2.") == 0);
}

TEST_CASE("Kafka source: tombstones and empty values are told apart") {
  const auto broker = start_broker({{"t", 1}});
  auto producer =
      kafka::Producer::open({{"bootstrap.servers", broker->bootstrap_servers()}}, "t", "", 0s, 5s);
  REQUIRE(producer);
  REQUIRE(producer.value()->send(0, {}, 0));
  const std::byte none{};
  REQUIRE(producer.value()->send(0, {&none, 0}, 0));
  REQUIRE(producer.value()->flush(5s));
  Opened opened(config_for(broker->bootstrap_servers(), "t"));
  std::vector<bool> tombstones;
  wait_for_count(
      [&] {
        const auto records = opened.source->poll(8, 20ms);
        REQUIRE(records);
        for (const auto& record : records.value()) tombstones.push_back(record.tombstone);
        return tombstones.size();
      },
      2, 5s);
  CHECK(tombstones == std::vector<bool>{true, false});
}

TEST_CASE(
    "Kafka source: a broker that goes away and comes back costs no record, and is mentioned once in a "
    "while") {
  const auto broker = start_broker({{"t", 1}});
  REQUIRE(testing::produce(broker->bootstrap_servers(), "t", numbered(0, 100)));
  Opened opened(config_for(broker->bootstrap_servers(), "t"));
  CHECK(opened.read(100, 5s).size() == 100);
  broker->set_down(true);
  CHECK(opened.read(1, 2500ms).empty());
  REQUIRE(opened.errors.size() == 1);  // librdkafka itself reports it several times per second
  CHECK(opened.errors[0].code == ErrorCode::source_lost);
  CHECK(contains(opened.errors[0].message, "can be reached"));
  CHECK(contains(std::string(opened.source->unreachable()), "no broker of " + broker->bootstrap_servers()));
  broker->set_down(false);
  REQUIRE(testing::produce(broker->bootstrap_servers(), "t", numbered(100, 20)));
  const auto rest = opened.read(20, 10s);
  REQUIRE(rest.size() == 20);
  CHECK(rest.front() == "100");
  CHECK(rest.back() == "119");
  CHECK(comes(opened, [&] { return opened.source->unreachable().empty(); }));
}

TEST_CASE("Kafka source: an end with a commit on its way and no broker takes seconds, not a session") {
  const auto broker = start_broker({{"t", 1}});
  REQUIRE(testing::produce(broker->bootstrap_servers(), "t", numbered(0, 10)));
  Opened opened(config_for(broker->bootstrap_servers(), "t"));
  CHECK(opened.read(10, 5s).size() == 10);
  const NextOffset position[] = {{{0, 0}, 5}};
  REQUIRE(opened.source->commit(position));
  CHECK(opened.read(1, 300ms).empty());
  broker->set_down(true);
  CHECK(opened.read(1, 300ms).empty());
  static_cast<void>(opened.source->commit(position));
  const TimePoint start = opened.clock.now();
  opened.source.reset();
  CHECK(opened.clock.now() - start < testing::deadline_slack * 5s);
}

TEST_CASE("Kafka source: a commit just before the end still arrives") {
  const auto broker = start_broker({{"t", 1}});
  REQUIRE(testing::produce(broker->bootstrap_servers(), "t", numbered(0, 10)));
  {
    Opened opened(config_for(broker->bootstrap_servers(), "t"));
    CHECK(opened.read(10, 5s).size() == 10);
    const NextOffset position[] = {{{0, 0}, 7}};
    REQUIRE(opened.source->commit(position));
  }
  CHECK(committed_offset(broker->bootstrap_servers(), "rivulet.test", "t", 0).value() == 7);
}

TEST_CASE("Kafka source: what it does is counted") {
  const auto broker = start_broker({{"t", 1}});
  REQUIRE(testing::produce(broker->bootstrap_servers(), "t", numbered(10, 30)));
  Opened opened(config_for(broker->bootstrap_servers(), "t"));
  CHECK(opened.read(20, 5s).size() == 20);
  CHECK(opened.metrics["kafka_records_consumed_total/t"] == 20);
  CHECK(opened.metrics["kafka_consumed_bytes_total/t"] == 40);
  CHECK(opened.metrics["kafka_assigned_partitions/t"] == 1);
  REQUIRE(opened.source->poll(0, 0s));
  CHECK(opened.metrics["kafka_paused_partitions"] == 1);
  wait_until(
      [&] {
        return static_cast<bool>(opened.source->poll(0, 0s)) &&
               opened.metrics["kafka_processed_lag_records/t/0"] == 10;
      },
      2s);
  CHECK(opened.metrics["kafka_processed_lag_records/t/0"] == 10);
  CHECK(opened.read(10, 5s).size() == 10);
  CHECK(opened.metrics["kafka_paused_partitions"] == 0);
}

TEST_CASE("Kafka source: what is not committed yet is told once something was committed, of each partition") {
  const auto broker = start_broker({{"t", 2}});
  const std::string servers = broker->bootstrap_servers();
  REQUIRE(testing::produce(servers, "t", numbered(0, 30)));
  REQUIRE(testing::produce(servers, "t", {{.value = "other", .partition = 1}}));
  auto config = config_for(servers, "t");
  config.partitions.push_back({"t", {0, 1}});
  Opened opened(config);
  CHECK(opened.read(31, 5s).size() == 31);
  const auto lag_is = [&](double records) {
    return wait_until(
        [&] {
          REQUIRE(opened.source->poll(1, 20ms));
          return opened.metrics.has("kafka_consumer_lag_records/t/0") &&
                 opened.metrics["kafka_consumer_lag_records/t/0"] == records;
        },
        5s);
  };
  CHECK_FALSE(opened.metrics.has("kafka_consumer_lag_records/t/0"));
  const NextOffset seven[] = {{{0, 0}, 7}};
  REQUIRE(opened.source->commit(seven));
  CHECK(lag_is(23));
  CHECK(opened.metrics["kafka_processed_lag_records/t/0"] == 0);
  CHECK_FALSE(opened.metrics.has("kafka_consumer_lag_records/t/1"));
  REQUIRE(testing::produce(servers, "t", numbered(30, 5)));
  CHECK(lag_is(28));
  broker->refuse_commits(1);
  const NextOffset all[] = {{{0, 0}, 35}, {{0, 1}, 1}};
  REQUIRE(opened.source->commit(all));
  wait_until(
      [&] { return opened.source->poll(1, 20ms) && opened.metrics["kafka_offset_commits_total/failed"] > 0; },
      5s);
  CHECK(opened.metrics["kafka_consumer_lag_records/t/0"] == 28);
  CHECK(lag_is(0));  // sent again
  CHECK(opened.metrics.has("kafka_consumer_lag_records/t/1"));
}

namespace {

/// An Opened whose client reports statistics at this interval.
Opened telling(const std::string& servers, const std::string& every_ms) {
  auto config = config_for(servers, "t");
  config.properties.emplace_back("statistics.interval.ms", every_ms);
  return Opened(config);
}

}  // namespace

TEST_CASE(
    "Kafka source: what its client tells of brokers and its queue is shown, also while nothing is taken") {
  const auto broker = start_broker({{"t", 1}});
  REQUIRE(testing::produce(broker->bootstrap_servers(), "t", numbered(10, 90)));
  Opened opened = telling(broker->bootstrap_servers(), "100");
  CHECK(opened.read(10, 5s).size() == 10);
  auto& metrics = opened.metrics;
  const auto shown = [&](std::size_t take, const char* name, double value) {
    return wait_until(
        [&] {
          static_cast<void>(opened.source->poll(take, 10ms));
          return metrics.has(name) && metrics[name] == value;
        },
        5s);
  };
  CHECK(shown(1, "kafka_brokers_up", 1));
  CHECK(metrics.has("kafka_broker_rtt_seconds/1"));
  CHECK(metrics["kafka_broker_rtt_seconds/1"] < testing::deadline_slack * 5);
  CHECK(metrics["kafka_throttle_seconds"] == 0);
  CHECK(shown(1, "kafka_fetch_queue_records", 0));
  CHECK(shown(1, "kafka_fetch_queue_bytes", 0));
  REQUIRE(opened.source->poll(0, 0s));
  REQUIRE(testing::produce(broker->bootstrap_servers(), "t", numbered(10, 90)));
  broker->set_down(true);
  CHECK(shown(0, "kafka_brokers_up", 0));
  CHECK(comes(opened, [&] { return !opened.source->unreachable().empty(); }));
  CHECK(opened.metrics["kafka_errors_total/transport"] > 0);
  broker->set_down(false);
  CHECK(shown(0, "kafka_brokers_up", 1));
  CHECK(comes(opened, [&] { return opened.source->unreachable().empty(); }));
}

TEST_CASE("Kafka source: records that its client has fetched and nobody has taken are counted, once") {
  const auto broker = start_broker({{"t", 2}});
  for (int i = 0; i < 10; ++i)  // of two bytes each; enough that a slow machine still has some left
    REQUIRE(testing::produce(broker->bootstrap_servers(), "t", numbered(10, 90)));
  auto config = config_for(broker->bootstrap_servers(), "t");
  config.partitions.push_back({"t", {0, 1}});
  config.properties.emplace_back("statistics.interval.ms", "20");
  Opened opened(config);
  CHECK(opened.read(2, 5s).size() == 2);
  // Both values are of one moment; what changes between two reports is in neither or in the next.
  double records = 0;
  const auto told = [&] {
    REQUIRE(opened.source->poll(1, 0s));
    records = opened.metrics["kafka_fetch_queue_records"];
    return records > 0 && opened.metrics["kafka_fetch_queue_bytes"] == 2 * records;
  };
  CHECK(wait_until(told, 5s));
  CHECK(records <= 10 * 90);
}

TEST_CASE("Kafka source: its client tells its statistics every two seconds, or as the user says") {
  const auto broker = start_broker({{"t", 1}});
  Opened never = telling(broker->bootstrap_servers(), "0");
  Opened usual(config_for(broker->bootstrap_servers(), "t"));
  const RealClock clock;
  const TimePoint start = clock.now();
  const bool told = wait_until(
      [&] {
        static_cast<void>(never.source->poll(1, 10ms));
        static_cast<void>(usual.source->poll(1, 10ms));
        return usual.metrics.has("kafka_brokers_up");
      },
      15s);
  CHECK(told);
  CHECK(clock.now() - start > 1500ms);
  CHECK_FALSE(never.metrics.has("kafka_brokers_up"));
}

TEST_CASE("Kafka source: offsets whose commit was refused are sent again, without anybody asking") {
  const auto broker = std::move(EmbeddedBroker::start({{"t", 1}})).value();
  REQUIRE(produce(broker->bootstrap_servers(), "t", {{.value = "a"}, {.value = "b"}, {.value = "c"}}));
  Opened opened(config_for(broker->bootstrap_servers(), "t"));
  REQUIRE(opened.read(3, 5s).size() == 3);
  broker->refuse_commits(2);
  const NextOffset position[] = {{{0, 0}, 3}};
  REQUIRE(opened.source->commit(position));
  const bool committed = wait_until(
      [&] {
        static_cast<void>(opened.source->poll(1, 20ms));
        return opened.metrics["kafka_offset_commits_total/ok"] > 0;
      },
      10s);
  CHECK(committed);
  CHECK(opened.metrics["kafka_offset_commits_total/failed"] == 2);
  CHECK(opened.metrics["kafka_errors_total/commit"] == 2);
  CHECK(opened.metrics["kafka_last_commit_timestamp_seconds"] > 1e9);
  CHECK(committed_offset(broker->bootstrap_servers(), "rivulet.test", "t", 0).value() == 3);
}
