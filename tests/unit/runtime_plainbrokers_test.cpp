// Warnings about remote brokers without encryption.
#include <doctest/doctest.h>

#include <string>

#include "runtime/node/plain_brokers.h"

using rivulet::runtime::broker_hosts;
using rivulet::runtime::plain_brokers;

TEST_CASE("PlainBrokers: only those beyond this machine, and only without encryption") {
  const auto of = [](const std::string& servers, const std::string& protocol = "") {
    std::vector<std::pair<std::string, std::string>> properties{{"bootstrap.servers", servers}};
    if (!protocol.empty()) properties.emplace_back("security.protocol", protocol);
    return plain_brokers(properties);
  };
  CHECK(of("localhost:9092,127.0.0.2:9092,[::1]:9092").empty());
  CHECK(of("kafka:9092") == "kafka:9092");
  CHECK(of("localhost:9092, kafka-1:9092 ,10.0.0.7:9092") == "kafka-1:9092, 10.0.0.7:9092");
  CHECK(of("kafka:9092", "SASL_PLAINTEXT") == "kafka:9092");
  CHECK(of("PLAINTEXT://kafka:9092") == "PLAINTEXT://kafka:9092");
  CHECK(of("[2001:db8::1]:9092") == "[2001:db8::1]:9092");
  for (const char* safe : {"ssl", "SSL", "sasl_ssl", "SASL_SSL"}) CHECK(of("kafka:9093", safe).empty());
  CHECK(plain_brokers({}).empty());
  CHECK(plain_brokers({{"metadata.broker.list", "b:1"}}) == "b:1");
}

TEST_CASE("PlainBrokers: hosts are those of the last list, without scheme, port and brackets") {
  CHECK(broker_hosts({}).empty());
  CHECK(broker_hosts({{"bootstrap.servers", "other:1"},
                      {"bootstrap.servers", "kafka-1:9092, SASL_SSL://10.0.0.7:9092 ,[::1]:9092,,bare"}}) ==
        std::vector<std::string>{"kafka-1", "10.0.0.7", "::1", "bare"});
}
