// Closing a client does not wait for events that never occur, on a real Apache Kafka.
#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <thread>

#include "core/clock.h"
#include "tests/support/kafka_client.h"
#include "tests/support/kafka_log_world.h"
#include "tests/support/shared_kafka.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

void must_do(const Status& status) {
  REQUIRE_MESSAGE(status, status.error().message);
}

Status append(OrderedLog& log, const std::string& text) {
  return log.append(std::as_bytes(std::span(text)));
}

/// Closes the log on a separate thread, which a failed test leaves behind.
bool ends_within(std::unique_ptr<OrderedLog> log, Duration limit) {
  auto ended = std::make_shared<std::promise<void>>();
  auto done = ended->get_future();
  std::thread([ended, log = std::shared_ptr<OrderedLog>(std::move(log))]() mutable {
    log.reset();
    ended->set_value();
  }).detach();
  return done.wait_for(limit) == std::future_status::ready;
}

}  // namespace

TEST_CASE("Kafka log: its topic is deleted under records on their way, and its end comes all the same") {
  const std::string brokers = shared_kafka().brokers();
  for (const bool noticed : {true, false}) {
    CAPTURE(noticed);
    const std::string topic = noticed ? "rivulet.deleted.control" : "rivulet.just-deleted.control";
    must_do(create_topic(brokers, topic, 1));
    auto log = kafka_log_world(brokers, topic).open();
    must_do(append(*log, "kept"));
    std::size_t seen = 0;
    REQUIRE(wait_until(
        [&] {
          const auto entries = log->poll(8);
          if (entries) seen += entries.value().size();
          return seen == 1;
        },
        20s));
    must_do(delete_topic(brokers, topic));
    if (noticed) {
      CHECK(wait_until(
          [&] {
            static_cast<void>(append(*log, "lost"));
            return !log->poll(8);
          },
          60s));
    }
    static_cast<void>(append(*log, "lost"));
    CHECK(ends_within(std::move(log), 20s));
  }
}
