#pragma once
#include <doctest/doctest.h>

#include "tests/support/kafka_server.h"

namespace rivulet::testing {

/// One Kafka for all tests of a program that only need some: each makes topics of its own.
inline KafkaServer& shared_kafka() {
  static const auto kafka = [] {
    auto started = KafkaServer::start();
    REQUIRE_MESSAGE(started, started.error().message);
    return std::move(started).value();
  }();
  return *kafka;
}

}  // namespace rivulet::testing
