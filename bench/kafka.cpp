// A real Apache Kafka for benchmarks in other languages. Starts it, creates topics, prints HOST:PORT on one
// line, and runs until standard input ends.
//   build/release/bench_kafka TOPIC:PARTITIONS...
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

#include "tests/support/kafka_server.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

struct Topic {
  std::string name;
  int partitions = 0;  ///< 0: invalid
};

Topic parse_topic(std::string_view text) {
  const auto colon = text.find(':');
  Topic topic{std::string(text.substr(0, colon))};
  if (colon == std::string_view::npos) return topic;
  const std::string digits(text.substr(colon + 1));
  const char* end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, topic.partitions).ptr != end) topic.partitions = 0;
  return topic;
}

/// Prints the reason and returns the exit code.
int failed(const std::string& why) {
  fmt::print(stderr, "bench_kafka: {}\n", why);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  auto kafka = KafkaServer::start();
  if (!kafka) return failed(kafka.error().message);
  const auto& brokers = kafka.value()->brokers();
  for (int i = 1; i < argc; ++i) {
    const auto topic = parse_topic(argv[i]);
    if (topic.name.empty() || topic.partitions < 1)
      return failed(fmt::format("'{}' is not TOPIC:PARTITIONS", argv[i]));
    const auto created = create_topic(brokers, topic.name, topic.partitions);
    if (!created) return failed(created.error().message);
  }
  fmt::print("{}\n", brokers);
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
  }
  return 0;
}
