#include <doctest/doctest.h>

#include "stream/embedded_broker.h"
#include "tests/support/kafka_client.h"
#include "tests/support/kafka_log_world.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

TEST_CASE("Ordered logs: a Kafka topic, embedded, keeps what every log promises") {
  auto broker = stream::EmbeddedBroker::start({{"c0", 1}, {"c1", 1}, {"c2", 1}, {"c3", 1}});
  REQUIRE_MESSAGE(broker, broker.error().message);
  int log = 0;
  check_ordered_log(
      [&] { return kafka_log_world(broker.value()->bootstrap_servers(), "c" + std::to_string(log++)); });
}

TEST_CASE("Kafka log: more than one partition is refused") {
  auto broker = std::move(stream::EmbeddedBroker::start({{"rivulet.j.control", 3}})).value();
  auto world = kafka_log_world(broker->bootstrap_servers(), "rivulet.j.control");
  const auto log = world.open();
  const Error error = log_error(*log, 5s);
  CHECK(error.code == ErrorCode::unavailable);
  CHECK(contains(error.message, "\"rivulet.j.control\" has 3 partitions, exactly one is allowed"));
  CHECK_FALSE(log->caught_up());
  CHECK_FALSE(log->append(bytes_of_text("x")));
}

TEST_CASE(
    "Kafka log: a missing topic that cannot be made names the commands that make it, and is not made by "
    "asking") {
  auto broker = std::move(stream::EmbeddedBroker::start({{"other", 1}})).value();
  const std::string servers = broker->bootstrap_servers();
  for (int attempt = 0; attempt < 2; ++attempt) {  // a second time: the first did not create it
    auto world = kafka_log_world(servers, "rivulet.pump.control");
    const auto log = world.open();
    REQUIRE(log->append(bytes_of_text("early")));
    const Error error = log_error(*log, 12s);
    CAPTURE(error.message);
    CHECK(error.code == ErrorCode::unavailable);
    CHECK(contains(error.message, "\"rivulet.pump.control\" does not exist"));
    CHECK(contains(error.message, "kafka-topics.sh --create --topic rivulet.pump.control --partitions 1 "));
    CHECK(contains(error.message, "--bootstrap-server " + servers));
    CHECK(contains(error.message, "rivulet broker --job pump "));
  }
}

TEST_CASE(
    "Kafka log: a broker that is not there is an error within the deadline, and appending before does not "
    "hang") {
  const auto opened = stream::open_kafka_log({.properties = {{"bootstrap.servers", "127.0.0.1:1"}},
                                              .topic = "rivulet.j.control",
                                              .client_id = "t",
                                              .open_deadline = 1s});
  REQUIRE_MESSAGE(opened, opened.error().message);
  OrderedLog& log = *opened.value();
  int taken = 0;
  while (taken < 2000 && log.append(bytes_of_text("x"))) ++taken;
  CHECK(taken == 1024);
  const RealClock clock;
  const TimePoint start = clock.now();
  const Error error = log_error(log, 5s);
  CHECK(clock.now() - start < testing::deadline_slack * 3s);
  CHECK(error.code == ErrorCode::unavailable);
  CHECK(contains(error.message, "no broker answered at 127.0.0.1:1 within 1 s"));
}

TEST_CASE("Kafka log: a broker that goes away and comes back costs nothing") {
  auto broker = std::move(stream::EmbeddedBroker::start({{"c", 1}})).value();
  auto world = kafka_log_world(broker->bootstrap_servers(), "c");
  const auto log = world.open();
  REQUIRE(log->append(bytes_of_text("before")));
  CHECK(read_log(world, *log, 1) == std::vector<std::string>{"before"});
  broker->set_down(true);
  REQUIRE(log->append(bytes_of_text("during")));
  const Error lost = log_error(*log, 5s);
  CHECK(lost.code == ErrorCode::source_lost);
  CHECK(contains(lost.message, "can be reached"));
  broker->set_down(false);
  std::string seen;
  wait_until(
      [&] {
        const auto entries = log->poll(8);
        if (entries && !entries.value().empty())
          seen.assign(reinterpret_cast<const char*>(entries.value()[0].bytes.data()),
                      entries.value()[0].bytes.size());
        return !seen.empty();
      },
      15s);
  CHECK(seen == "during");
}

TEST_CASE("Kafka log: a partition that gets its leader late is opened late") {
  auto broker = std::move(stream::EmbeddedBroker::start({{"c", 1}})).value();
  broker->set_leaderless("c", 0, true);
  auto world = kafka_log_world(broker->bootstrap_servers(), "c");
  const auto log = world.open();
  REQUIRE(log->append(bytes_of_text("early")));
  CHECK(log_error(*log, 700ms).message.empty());
  broker->set_leaderless("c", 0, false);
  CHECK(read_log(world, *log, 1) == std::vector<std::string>{"early"});
}

TEST_CASE("Kafka log: bad properties are refused at once, in librdkafka's words") {
  const auto log = stream::open_kafka_log(
      {.properties = {{"bootstrap.servers", "127.0.0.1:1"}, {"acks", "many"}, {"no.such", "1"}},
       .topic = "c"});
  REQUIRE_FALSE(log);
  CHECK(log.error().code == ErrorCode::invalid_config);
  CHECK(contains(log.error().message, "acks: "));
  CHECK(contains(log.error().message, "No such configuration property: \"no.such\""));
}
