// A full queue of the client is refilled immediately, even if it was emptied slowly.
#include <doctest/doctest.h>

#include <thread>

#include "core/clock.h"
#include "stream/open.h"
#include "tests/support/assigned.h"
#include "tests/support/kafka_client.h"
#include "tests/support/shared_kafka.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::stream;
using namespace rivulet::testing;
using namespace std::chrono_literals;

TEST_CASE("Real Kafka: a queue that was full is fetched into again as soon as it has room") {
  constexpr std::size_t count = 8000;
  constexpr std::size_t at_once = 1000;
  const std::string& brokers = shared_kafka().brokers();
  const Status made = create_topic(brokers, "refill", 1);
  REQUIRE_MESSAGE(made, made.error().message);
  std::vector<TestRecord> records(count);
  for (auto& record : records) record.value = std::string(1000, '.');
  const Status produced = produce(brokers, "refill", records);
  REQUIRE_MESSAGE(produced, produced.error().message);

  RealClock clock;
  NullMetrics metrics;
  testing::KafkaReading config;
  config.properties = {{"bootstrap.servers", brokers},
                       {"queued.max.messages.kbytes", "256"},
                       {"fetch.message.max.bytes", "65536"}};
  config.group_id = "rivulet.test";
  config.partitions = {{"refill", {0, 0}}};
  auto source = config.open(clock, metrics);
  REQUIRE_MESSAGE(source, source.error().message);

  // Eight batches of the broker, each of which fills the queue. It fills while it is not read; librdkafka 2.0
  // alone would then take a second.
  std::size_t read = 0, rested = 0;
  const TimePoint end = clock.now() + 30s;
  TimePoint began{};
  while (read < count && clock.now() < end) {
    const auto polled = source.value()->poll(at_once, 20ms);
    REQUIRE_MESSAGE(polled, polled.error().message);
    if (polled.value().empty()) continue;
    if (read == 0) began = clock.now();
    read += polled.value().size();
    if (read < rested + at_once) continue;
    rested = read;
    std::this_thread::sleep_for(100ms);
  }
  REQUIRE(read == count);
  const double seconds = to_seconds(clock.now() - began);
  CHECK_MESSAGE(seconds < testing::deadline_slack * 5, "took ", seconds, " s");
}
