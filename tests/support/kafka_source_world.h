#pragma once
#include <memory>
#include <string>

#include "core/clock.h"
#include "core/metrics.h"
#include "stream/kafka/producer.h"
#include "stream/open.h"
#include "tests/conformance/record_source_suite.h"
#include "tests/support/assigned.h"
#include "tests/support/kafka_client.h"

namespace rivulet::testing {

/// The world of a Kafka source: an existing topic with two partitions on any broker.
inline std::unique_ptr<SourceWorld> kafka_source_world(const std::string& name, const std::string& brokers,
                                                       const std::string& topic) {
  struct World : SourceWorld {
    RealClock clock;
    NullMetrics metrics;
    std::string topic_name;
    int made = 0;
  };
  auto world = std::make_unique<World>();
  World* w = world.get();
  world->name = name;
  world->topic_name = topic;
  world->partitions = {{0, 0}, {0, 1}};
  const std::string group = "rivulet." + topic;
  world->value = [](PartitionId id, std::int64_t offset) {
    return "record " + std::to_string(id.partition) + "/" + std::to_string(offset) +
           std::string(static_cast<std::size_t>(offset % 50), '.');
  };
  world->open = [w, brokers, group](const Offsets& resume) {
    KafkaReading config;
    config.properties = {{"bootstrap.servers", brokers}};
    config.group_id = group;
    config.client_id = "conformance";
    for (const auto id : w->partitions) config.partitions.push_back({w->topic_name, id});
    config.resume = resume;
    auto source = config.open(w->clock, w->metrics);
    REQUIRE_MESSAGE(source, source.error().message);
    return std::move(source).value();
  };
  world->produce = [w, brokers](int n) {
    // Idempotent, unlike the tests' plain client, whose retries may reorder records.
    auto producer = stream::kafka::Producer::open({{"bootstrap.servers", brokers}}, w->topic_name,
                                                  "conformance", Duration(0), std::chrono::seconds(20));
    REQUIRE_MESSAGE(producer, producer.error().message);
    for (const auto id : w->partitions)
      for (int i = w->made; i < w->made + n; ++i) {
        const std::string text = w->value(id, i);
        REQUIRE(producer.value()->send(id.partition, std::as_bytes(std::span(text)), 1'700'000'000'000 + i));
      }
    w->made += n;
    const Status status = producer.value()->flush(std::chrono::seconds(20));
    REQUIRE_MESSAGE(status, status.error().message);
  };
  world->committed = [w, brokers, group](PartitionId id) {
    const auto offset = committed_offset(brokers, group, w->topic_name, id.partition);
    REQUIRE_MESSAGE(offset, offset.error().message);
    return offset.value();
  };
  return world;
}

}  // namespace rivulet::testing
