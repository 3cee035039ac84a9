#pragma once
#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/metrics.h"
#include "stream/embedded_broker.h"
#include "stream/open.h"
#include "tests/support/assigned.h"
#include "tests/support/counting_metrics.h"
#include "tests/support/kafka_client.h"
#include "tests/support/wait.h"

namespace rivulet::testing {

using namespace std::chrono_literals;

inline KafkaReading config_for(const std::string& servers, const std::string& topic,
                               std::int32_t partition = 0) {
  KafkaReading config;
  config.properties = {{"bootstrap.servers", servers}};
  config.group_id = "rivulet.test";
  config.partitions = {{topic, {0, partition}}};
  config.open_deadline = 2s;
  return config;
}

struct Opened {
  RealClock clock;
  CountingMetrics metrics;
  std::unique_ptr<stream::RecordSource> source;
  explicit Opened(const KafkaReading& config) {
    auto opened = config.open(clock, metrics);
    REQUIRE_MESSAGE(opened, opened.error().message);
    source = std::move(opened).value();
  }
  /// Polls until `count` records have arrived, or none for twice `patience`. Returns their values. Errors
  /// other than source_lost end it.
  std::vector<std::string> read(std::size_t count, Duration patience) {
    std::vector<std::string> values;
    wait_for_count(
        [&]() -> std::uint64_t {
          const auto records = source->poll(count - values.size(), 20ms);
          if (!records) {
            errors.push_back(records.error());
            return records.error().code != ErrorCode::source_lost ? count : values.size();
          }
          for (const auto& record : records.value()) {
            values.emplace_back(reinterpret_cast<const char*>(record.value.data()), record.value.size());
            timestamps.push_back(record.timestamp_ms);
          }
          return values.size();
        },
        count, patience);
    return values;
  }
  std::vector<Error> errors;
  std::vector<std::int64_t> timestamps;
};

inline std::vector<TestRecord> numbered(int first, int count, std::size_t bytes = 0) {
  std::vector<TestRecord> records;
  for (int i = first; i < first + count; ++i)
    records.push_back(
        {.value = std::to_string(i) + std::string(bytes, '.'), .timestamp_ms = 1'700'000'000'000 + i});
  return records;
}

inline std::unique_ptr<stream::EmbeddedBroker> start_broker(
    const std::vector<stream::EmbeddedBroker::Topic>& topics) {
  auto broker = stream::EmbeddedBroker::start(topics);
  REQUIRE_MESSAGE(broker, broker.error().message);
  return std::move(broker).value();
}

}  // namespace rivulet::testing
