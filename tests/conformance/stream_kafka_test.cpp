#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "core/clock.h"
#include "stream/embedded_broker.h"
#include "stream/kafka/producer.h"
#include "stream/open.h"
#include "tests/support/kafka_client.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::stream;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

/// Sums every counter and keeps the last of every gauge, by name and label values.
class CountingMetrics final : public MetricsSink {
 public:
  Counter& counter(std::string_view name, Labels labels) override { return cells_[key(name, labels)]; }
  Gauge& gauge(std::string_view name, Labels labels) override { return cells_[key(name, labels)]; }
  Histogram& histogram(std::string_view name, Labels labels) override { return cells_[key(name, labels)]; }
  double operator[](const std::string& name) { return cells_[name].value; }

 private:
  struct Cell final : Counter, Gauge, Histogram {
    void add(double amount) noexcept override { value += amount; }
    void set(double to) noexcept override { value = to; }
    void observe(double) noexcept override { value += 1; }
    double value = 0;
  };
  static std::string key(std::string_view name, Labels labels) {
    std::string text(name);
    for (const auto& [label, value] : labels) text += "/" + std::string(value);
    return text;
  }
  std::map<std::string, Cell> cells_;
};

KafkaSourceConfig config_for(const std::string& servers, const std::string& topic,
                             std::int32_t partition = 0) {
  KafkaSourceConfig config;
  config.properties = {{"bootstrap.servers", servers}};
  config.group_id = "rivulet.test";
  config.partitions = {{topic, {0, partition}}};
  config.open_deadline = 2s;
  return config;
}

struct Opened {
  RealClock clock;
  CountingMetrics metrics;
  std::unique_ptr<RecordSource> source;
  explicit Opened(const KafkaSourceConfig& config) {
    auto opened = open_kafka_source(config, clock, metrics);
    REQUIRE_MESSAGE(opened, opened.error().message);
    source = std::move(opened).value();
  }
  /// Polls until `count` records came or `deadline` passed; their values. Errors other than source_lost end
  /// it.
  std::vector<std::string> read(std::size_t count, Duration deadline) {
    std::vector<std::string> values;
    wait_until(
        [&] {
          const auto records = source->poll(count - values.size(), 20ms);
          if (!records) {
            errors.push_back(records.error());
            return records.error().code != ErrorCode::source_lost;
          }
          for (const auto& record : records.value()) {
            values.emplace_back(reinterpret_cast<const char*>(record.value.data()), record.value.size());
            timestamps.push_back(record.timestamp_ms);
          }
          return values.size() >= count;
        },
        deadline);
    return values;
  }
  std::vector<Error> errors;
  std::vector<std::int64_t> timestamps;
};

std::vector<TestRecord> numbered(int first, int count, std::size_t bytes = 0) {
  std::vector<TestRecord> records;
  for (int i = first; i < first + count; ++i)
    records.push_back(
        {.value = std::to_string(i) + std::string(bytes, '.'), .timestamp_ms = 1'700'000'000'000 + i});
  return records;
}

std::unique_ptr<EmbeddedBroker> start_broker(const std::vector<EmbeddedBroker::Topic>& topics) {
  auto broker = EmbeddedBroker::start(topics);
  REQUIRE_MESSAGE(broker, broker.error().message);
  return std::move(broker).value();
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

TEST_CASE("Kafka source: earliest, latest and an offset, each without the half second of a logical start") {
  const auto broker = start_broker({{"t", 1}});
  REQUIRE(testing::produce(broker->bootstrap_servers(), "t", numbered(0, 50)));
  auto config = config_for(broker->bootstrap_servers(), "t");
  const RealClock clock;
  // A logical start costs its half second every time, a busy machine only now and then: one quick try proves.
  const auto first_of = [&](StartOffset start) {
    config.start = start;
    std::string value;
    bool quick = false;
    for (int attempt = 0; attempt < 5 && !quick; ++attempt) {
      Opened opened(config);
      const TimePoint began = clock.now();
      value = opened.read(1, 3s).at(0);
      quick = clock.now() - began < 400ms;
      CHECK(opened.timestamps == std::vector<std::int64_t>{1'700'000'000'000 + std::stoi(value)});
    }
    CHECK(quick);
    return value;
  };
  CHECK(first_of({.kind = StartOffset::Kind::earliest}) == "0");
  CHECK(first_of({.kind = StartOffset::Kind::absolute, .offset = 17}) == "17");
  config.resume = {{{0, 0}, 49}};
  CHECK(first_of({.kind = StartOffset::Kind::absolute, .offset = 17}) == "49");
  config.resume.clear();
  config.start = {.kind = StartOffset::Kind::latest};
  Opened latest(config);
  CHECK(latest.read(1, 200ms).empty());
  CHECK(latest.source->partitions()[0].next_offset == 50);
  REQUIRE(testing::produce(broker->bootstrap_servers(), "t", numbered(50, 1)));
  CHECK(latest.read(1, 3s) == std::vector<std::string>{"50"});
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

TEST_CASE("Kafka source: a topic that is made while the source waits for it is found") {
  // The embedded broker makes a topic when a producer names it: with four partitions.
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
  CHECK(opened.clock.now() - start < 5s);
  REQUIRE(opened.errors.size() == 1);
  CHECK(opened.errors[0].code == ErrorCode::unavailable);
  CAPTURE(opened.errors[0].message);
  CHECK(contains(opened.errors[0].message, "no broker answered at 127.0.0.1:1 within 2 s"));
  CHECK(contains(opened.errors[0].message, "Connection refused"));
  CHECK(opened.metrics["kafka_errors_total/transport"] > 0);
}

TEST_CASE(
    "Kafka source: an offset the broker does not have stops its partition with a sentence, until a seek") {
  const auto broker = start_broker({{"t", 2}});
  const std::string servers = broker->bootstrap_servers();
  REQUIRE(testing::produce(servers, "t", numbered(0, 20)));
  REQUIRE(testing::produce(servers, "t", {{.value = "other", .partition = 1}}));
  auto config = config_for(servers, "t");
  config.partitions.push_back({"t", {0, 1}});
  config.resume = {{{0, 0}, 500}};
  Opened opened(config);
  CHECK(opened.read(1, 3s) == std::vector<std::string>{"other"});  // the other one is read
  CHECK(opened.source->partitions()[1].stopped.empty());
  const auto& stopped = opened.source->partitions()[0];
  CAPTURE(stopped.stopped);
  CHECK(contains(stopped.stopped,
                 "topic \"t\", partition 0: offset 500 is not there, the broker has 0 up to 20: "));
  CHECK(stopped.next_offset == 500);
  CHECK(stopped.high_watermark == 20);
  CHECK(opened.metrics["kafka_stopped_partition/t/0"] == 1);
  CHECK(opened.metrics["kafka_stopped_partition/t/1"] == 0);
  const NextOffset there[] = {{{0, 0}, 18}};
  REQUIRE(opened.source->seek(there));
  CHECK(opened.read(2, 5s) == std::vector<std::string>{"18", "19"});
  CHECK(opened.source->partitions()[0].stopped.empty());
  CHECK(opened.metrics["kafka_stopped_partition/t/0"] == 0);
  const NextOffset too_far[] = {{{0, 0}, 700}};
  REQUIRE(opened.source->seek(too_far));
  CHECK(opened.read(1, 2s).empty());
  CHECK(contains(opened.source->partitions()[0].stopped, "offset 700 is not there"));
  const NextOffset back[] = {{{0, 0}, 3}};
  REQUIRE(opened.source->seek(back));
  CHECK(opened.read(1, 5s) == std::vector<std::string>{"3"});
  CHECK(opened.errors.empty());
}

TEST_CASE(
    "Kafka source: data the broker has thrown away stops the partition, or is counted; never a silent jump") {
  const auto broker = start_broker({{"t", 1}});
  const std::string servers = broker->bootstrap_servers();
  REQUIRE(testing::produce(servers, "t", numbered(0, 100)));
  auto config = config_for(servers, "t");
  config.properties.emplace_back("queued.max.messages.kbytes", "64");
  Opened stops(config);
  config.count_gaps = true;
  Opened counts(config);
  for (Opened* opened : {&stops, &counts}) {
    CHECK(opened->read(10, 3s).size() == 10);
    for (int i = 0; i < 60; ++i)
      REQUIRE(opened->source->poll(0, 5ms));  // paused: what was fetched is dropped
  }
  for (int i = 0; i < 8; ++i) REQUIRE(testing::produce(servers, "t", numbered(100 + 10 * i, 10, 90'000)));
  stops.read(1000, 2s);
  const auto& stopped = stops.source->partitions()[0];
  CAPTURE(stopped.stopped);
  CHECK(contains(stopped.stopped, "offset " + std::to_string(stopped.next_offset) + " is not there"));
  CHECK(contains(stopped.stopped, "retention"));
  CHECK(stops.source->take_gaps().empty());
  std::size_t got = 0;
  for (int tries = 0; tries < 60 && counts.source->partitions()[0].next_offset < 180; ++tries)
    got += counts.read(20, 1s).size();
  const auto gaps = counts.source->take_gaps();
  REQUIRE(gaps.size() == 1);
  CHECK(gaps[0].from == stopped.next_offset);
  CHECK(gaps[0].to == stopped.low_watermark);
  CHECK(static_cast<std::int64_t>(got) + 10 + gaps[0].to - gaps[0].from == 180);
  CHECK(counts.source->take_gaps().empty());  // exactly once
  CHECK(counts.source->partitions()[0].skipped == gaps[0].to - gaps[0].from);
  CHECK(counts.metrics["kafka_gap_records_total/t/0"] == static_cast<double>(gaps[0].to - gaps[0].from));
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
  wait_until(
      [&] {
        const auto records = opened.source->poll(8, 20ms);
        REQUIRE(records);
        for (const auto& record : records.value()) tombstones.push_back(record.tombstone);
        return tombstones.size() == 2;
      },
      5s);
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
  REQUIRE(opened.errors.size() == 1);  // librdkafka itself complains several times a second
  CHECK(opened.errors[0].code == ErrorCode::source_lost);
  CHECK(contains(opened.errors[0].message, "can be reached"));
  broker->set_down(false);
  REQUIRE(testing::produce(broker->bootstrap_servers(), "t", numbered(100, 20)));
  const auto rest = opened.read(20, 10s);
  REQUIRE(rest.size() == 20);
  CHECK(rest.front() == "100");
  CHECK(rest.back() == "119");
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
  CHECK(opened.clock.now() - start < 5s);
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
