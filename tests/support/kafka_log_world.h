#pragma once
#include <memory>
#include <string>

#include "core/clock.h"
#include "stream/open.h"
#include "tests/conformance/ordered_log_suite.h"
#include "tests/support/wait.h"

namespace rivulet::testing {

/// A control log in a Kafka topic.
inline LogWorld kafka_log_world(const std::string& brokers, const std::string& topic) {
  LogWorld world;
  world.open = [brokers, topic] {
    auto log = stream::open_kafka_log(
        {.properties = {{"bootstrap.servers", brokers}}, .topic = topic, .client_id = "test"});
    REQUIRE_MESSAGE(log, log.error().message);
    return std::move(log).value();
  };
  // Limits all waits together to ten seconds.
  world.wait = [left = 2000]() mutable {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return --left > 0;
  };
  return world;
}

/// Waits until the log fails, and returns its error; the message is empty after `deadline`.
inline Error log_error(OrderedLog& log, Duration deadline) {
  Error error;
  wait_until(
      [&] {
        const auto entries = log.poll(8);
        if (!entries) error = entries.error();
        return !entries;
      },
      deadline);
  return error;
}

}  // namespace rivulet::testing
