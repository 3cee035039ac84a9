#pragma once
#include <doctest/doctest.h>

#include "tests/support/kafka_server.h"

namespace rivulet::testing {

/// One Kafka shared by all tests of a program; each creates its own topics.
inline KafkaServer& shared_kafka() {
  static const auto kafka = [] {
    auto started = KafkaServer::start();
    REQUIRE_MESSAGE(started, started.error().message);
    return std::move(started).value();
  }();
  return *kafka;
}

}  // namespace rivulet::testing
