#include <doctest/doctest.h>

#include "core/clock.h"
#include "tests/support/kafka_server.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

std::vector<TestRecord> numbered_records(int count) {
  std::vector<TestRecord> records;
  for (int i = 0; i < count; ++i) {
    records.push_back(TestRecord{"value " + std::to_string(i), "key", 1, 1'700'000'000'000 + i});
  }
  return records;
}

}  // namespace

TEST_CASE("Support: a real Kafka gives back the records it was given, after a kill and a restart too") {
  Result<std::unique_ptr<KafkaServer>> started = KafkaServer::start();
  REQUIRE_MESSAGE(started, started.error().message);
  KafkaServer& kafka = *started.value();
  const Status created = create_topic(kafka.brokers(), "numbers", 2, {{"retention.ms", "-1"}});
  REQUIRE_MESSAGE(created, created.error().message);
  CHECK_FALSE(create_topic(kafka.brokers(), "numbers", 2));
  REQUIRE(produce(kafka.brokers(), "numbers", numbered_records(100)));
  CHECK_FALSE(produce(kafka.brokers(), "missing", {TestRecord{"lost"}}));

  kafka.kill();
  CHECK_FALSE(wait_for_broker(kafka.brokers(), 100ms));
  const Status again = kafka.restart();
  REQUIRE_MESSAGE(again, again.error().message);

  const auto records = consume(kafka.brokers(), "numbers", 1, 40, 60, 20s);
  REQUIRE_MESSAGE(records, records.error().message);
  CHECK(records.value().front().value == "value 40");
  CHECK(records.value().front().offset == 40);
  CHECK(records.value().back().timestamp_ms == 1'700'000'000'099);
  CHECK_FALSE(consume(kafka.brokers(), "numbers", 0, 0, 1, 200ms));
  const auto ends = watermarks(kafka.brokers(), "numbers", 1);
  REQUIRE(ends);
  CHECK(ends.value() == std::pair<std::int64_t, std::int64_t>(0, 100));
  const auto committed = committed_offset(kafka.brokers(), "nobody", "numbers", 1);
  REQUIRE_MESSAGE(committed, committed.error().message);
  CHECK(committed.value() == -1);
  CHECK(kafka.stop());
}
