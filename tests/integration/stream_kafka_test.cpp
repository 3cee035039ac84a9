#include <doctest/doctest.h>
#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <set>
#include <thread>

#include "core/clock.h"
#include "stream/dataset.h"
#include "stream/feeder.h"
#include "stream/kafka/client.h"
#include "stream/kafka/metadata.h"
#include "stream/open.h"
#include "stream/topics.h"
#include "tests/support/kafka_client.h"
#include "tests/support/kafka_log_world.h"
#include "tests/support/kafka_server.h"
#include "tests/support/kafka_source_world.h"
#include "tests/support/places.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

std::unique_ptr<KafkaServer> start_kafka() {
  auto kafka = KafkaServer::start();
  REQUIRE_MESSAGE(kafka, kafka.error().message);
  return std::move(kafka).value();
}

void make_topic(const KafkaServer& kafka, const std::string& topic, int partitions,
                const std::map<std::string, std::string>& settings = {}) {
  const Status made = create_topic(kafka.brokers(), topic, partitions, settings);
  REQUIRE_MESSAGE(made, made.error().message);
}

void sources_keep_their_promises(KafkaServer& kafka) {
  int world = 0;
  check_record_source([&] {
    const std::string topic = "t" + std::to_string(world++);
    make_topic(kafka, topic, 2);
    return kafka_source_world("real Kafka", kafka.brokers(), topic);
  });
}

void logs_keep_their_promises(KafkaServer& kafka) {
  int log = 0;
  check_ordered_log(
      [&] { return kafka_log_world(kafka.brokers(), "rivulet.j" + std::to_string(log++) + ".control"); });

  auto world = kafka_log_world(kafka.brokers(), "rivulet.times.control");
  const auto first = world.open();
  const long long before = unix_time_ms();
  REQUIRE(first->append(bytes_of_text("now")));
  std::int64_t appended = 0;
  wait_until(
      [&] {
        const auto entries = first->poll(1);
        REQUIRE_MESSAGE(entries, entries.error().message);
        if (!entries.value().empty()) appended = entries.value()[0].append_time_ms;
        return appended != 0;
      },
      10s);
  CHECK(appended >= before);
  CHECK(appended <= unix_time_ms());

  make_topic(kafka, "rivulet.wide.control", 3);
  auto wide = kafka_log_world(kafka.brokers(), "rivulet.wide.control");
  CHECK(log_error(*wide.open(), 10s).message.find("has 3 partitions, exactly one is allowed") !=
        std::string::npos);
}

/// A log that ends with offsets of an aborted transaction is read to its end.
void log_ends_in_a_hole(KafkaServer& kafka) {
  const std::string topic = "rivulet.hole.control";
  make_topic(kafka, topic, 1);
  REQUIRE(produce(kafka.brokers(), topic, {{.value = "seen"}}));
  const Status aborted = produce_and_abort(kafka.brokers(), topic, {{.value = "never"}, {.value = "seen"}});
  REQUIRE_MESSAGE(aborted, aborted.error().message);
  auto world = kafka_log_world(kafka.brokers(), topic);
  const auto log = world.open();
  std::vector<std::int64_t> offsets;
  wait_until(
      [&] {
        const auto entries = log->poll(8);
        REQUIRE_MESSAGE(entries, entries.error().message);
        for (const auto& entry : entries.value()) offsets.push_back(entry.offset);
        return log->caught_up();
      },
      10s);
  CHECK(log->caught_up());
  CHECK(offsets == std::vector<std::int64_t>{0});
}

void kill_costs_no_record(KafkaServer& kafka) {
  make_topic(kafka, "killed", 2);
  const auto world = kafka_source_world("killed Kafka", kafka.brokers(), "killed");
  world->produce(500);
  const auto source = world->open({});
  SourceReader reader(*world, *source);
  REQUIRE(reader.read_to(200, 10));
  kafka.kill();
  // Delivers the client's fetched records, then stays silent except for occasional warnings.
  int problems = 0;
  const RealClock clock;
  const TimePoint until = clock.now() + 3s;
  Offsets& next = reader.next();
  while (clock.now() < until) {
    const auto records = source->poll(50, 20ms);
    if (!records) {
      CHECK(records.error().code == ErrorCode::source_lost);
      ++problems;
      continue;
    }
    for (const auto& record : records.value()) REQUIRE(record.offset == next[record.partition]++);
  }
  CHECK(problems <= 1);
  const Status again = kafka.restart();
  REQUIRE_MESSAGE(again, again.error().message);
  world->produce(100);
  bool done = false;
  wait_until(
      [&] {
        const auto records = source->poll(50, 20ms);
        if (!records) return false;
        for (const auto& record : records.value()) REQUIRE(record.offset == next[record.partition]++);
        done = next[{0, 0}] == 600 && next[{0, 1}] == 600;
        return done;
      },
      30s);
  CHECK(done);
}

/// Offsets whose commit failed are committed later, without another call.
void failed_commit_is_repeated(KafkaServer& kafka, SourceWorld& world, stream::RecordSource& source) {
  const RealClock clock;
  kafka.suspend();
  const NextOffset position[] = {{{0, 0}, 80}};
  REQUIRE(source.commit(position));
  const auto serve = [&] {
    static_cast<void>(source.poll(0, 5ms));
  };  // occasional warnings that the broker is unreachable
  for (const auto until = clock.now() + 9s; clock.now() < until; std::this_thread::sleep_for(20ms)) serve();
  kafka.resume();
  CHECK(wait_until(
      [&] {
        serve();
        return world.committed({0, 0}) == 80;
      },
      20s));
}

/// A broker suspended during topic requests of logs is asked again. Chance decides when that meets a log's
/// opening, so there are twenty.
void slow_broker_opens_logs(KafkaServer& kafka) {
  std::vector<LogWorld> worlds;
  std::vector<std::unique_ptr<OrderedLog>> logs;
  for (int i = 0; i < 20; ++i) {
    worlds.push_back(kafka_log_world(kafka.brokers(), fmt::format("rivulet.slow{}.control", i)));
    logs.push_back(worlds.back().open());
    REQUIRE(logs.back()->append(bytes_of_text("early")));
    std::this_thread::sleep_for(20ms);
  }
  kafka.suspend();
  std::this_thread::sleep_for(5s);  // longer than one attempt to create a topic, shorter than the opening
  kafka.resume();
  for (std::size_t i = 0; i < logs.size(); ++i)
    CHECK(read_log(worlds[i], *logs[i], 1) == std::vector<std::string>{"early"});
}

void stopped_broker_holds_nobody(KafkaServer& kafka) {
  make_topic(kafka, "stopped", 2);
  const auto world = kafka_source_world("stopped Kafka", kafka.brokers(), "stopped");
  world->produce(100);
  auto source = world->open({});
  SourceReader reader(*world, *source);
  REQUIRE(reader.read_to(100, 50));
  const NextOffset position[] = {{{0, 0}, 60}};
  REQUIRE(source->commit(position));  // so that it knows the coordinator
  CHECK(wait_until(
      [&] {
        reader.poll(0);
        return world->committed({0, 0}) == 60;
      },
      10s));
  failed_commit_is_repeated(kafka, *world, *source);
  auto logs = kafka_log_world(kafka.brokers(), "rivulet.stopped.control");
  auto log = logs.open();
  REQUIRE(log->append(bytes_of_text("before")));
  CHECK(read_log(logs, *log, 1).size() == 1);
  kafka.suspend();
  REQUIRE(source->commit(position));
  REQUIRE(log->append(bytes_of_text("after")));
  const RealClock clock;
  const TimePoint start = clock.now();
  source.reset();
  CHECK(clock.now() - start < testing::deadline_slack * 5s);
  const TimePoint middle = clock.now();
  log.reset();
  CHECK(clock.now() - middle < testing::deadline_slack * 3s);
  kafka.resume();
}

void feeder_keeps_rates(KafkaServer& kafka) {
  make_topic(kafka, "mnist", 3);
  const auto data = stream::open_dataset(source_path("examples/mnist/data"), stream::Split::test);
  REQUIRE_MESSAGE(data, data.error().message);
  stream::FeederConfig config;
  config.properties = {{"bootstrap.servers", kafka.brokers()}};
  config.topic = "mnist";
  config.rates = {800, 400, 100};
  config.duration = 2s;
  config.labels_per_device = 4;
  const RealClock clock;
  const auto fed = stream::feed(*data.value(), config, clock, {}, {});
  REQUIRE_MESSAGE(fed, fed.error().message);
  CHECK(fed.value().per_partition == std::vector<std::uint64_t>{1600, 800, 200});
  std::set<char> labels;
  const auto records = consume(kafka.brokers(), "mnist", 1, 0, 800, 20s);
  REQUIRE_MESSAGE(records, records.error().message);
  for (const auto& record : records.value()) {
    REQUIRE(record.value.size() == 785);
    labels.insert(record.value[0]);
  }
  CHECK(labels.size() == 4);
}

std::vector<std::string> listed_topics(const KafkaServer& kafka) {
  auto all = stream::list_topics({{"bootstrap.servers", kafka.brokers()}}, 20s);
  REQUIRE_MESSAGE(all, all.error().message);
  return std::move(all).value();
}

/// Number of topics in the broker's answer to a new client, from the client's debug output.
int topics_in_answer(const KafkaServer& kafka, stream::Properties properties,
                     const std::vector<std::string>& topics) {
  properties.emplace_back("bootstrap.servers", kafka.brokers());
  stream::kafka::NobodyListens silence;
  const auto client =
      stream::kafka::Client::open(stream::kafka::ClientKind::consumer, properties, {}, silence);
  REQUIRE(client);
  const auto answer = stream::kafka::query_topics(client.value()->handle(), topics, 20s);
  REQUIRE_MESSAGE(answer, answer.error().message);
  return answer.value()->topic_cnt;
}

/// Of all topics of a broker, a device that asks every 20 s requests only its own. It does not create a
/// missing one on brokers that would allow it.
void questions_stay_small(KafkaServer& kafka) {
  make_topic(kafka, "mine", 2);
  for (int i = 0; i < 5; ++i) make_topic(kafka, "of-others-" + std::to_string(i), 1);
  const std::vector<std::string> topics{"mine", "absent"};
  CHECK(topics_in_answer(kafka, {}, topics) == 2);
  // A client that may create topics gets the list of all, which creates none either.
  CHECK(topics_in_answer(kafka, {{"allow.auto.create.topics", "true"}}, topics) == 6);
  const stream::Properties properties{{"bootstrap.servers", kafka.brokers()}};
  const auto lookup = stream::make_topic_lookup(properties, topics);
  for (int i = 0; i < 2; ++i) {
    const auto facts = lookup->query(20s);
    REQUIRE_MESSAGE(facts, facts.error().message);
    CHECK(facts.value().at(0).partitions == 2);
    CHECK_FALSE(facts.value().at(1).partitions);
  }
  CHECK(stream::advertised_hosts(properties, "absent", 20s).value() == std::vector<std::string>{"127.0.0.1"});
  CHECK(std::ranges::count(listed_topics(kafka), "absent") == 0);
}

}  // namespace

TEST_CASE("Real Kafka: questions about topics are about these, and make none on brokers that make topics") {
  auto kafka = KafkaServer::start({.properties = {{"auto.create.topics.enable", "true"}}});
  REQUIRE_MESSAGE(kafka, kafka.error().message);
  questions_stay_small(*kafka.value());
}

TEST_CASE("Real Kafka: sources, logs and the feeder keep their promises there") {
  const auto kafka = start_kafka();
  sources_keep_their_promises(*kafka);
  logs_keep_their_promises(*kafka);
  log_ends_in_a_hole(*kafka);
  feeder_keeps_rates(*kafka);
}

TEST_CASE("Real Kafka: a killed broker costs no record, and a stopped one holds nobody for long") {
  const auto kafka = start_kafka();
  kill_costs_no_record(*kafka);
  slow_broker_opens_logs(*kafka);
  stopped_broker_holds_nobody(*kafka);
}
