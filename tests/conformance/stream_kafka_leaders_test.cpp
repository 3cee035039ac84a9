// A cluster with one unreachable broker: partitions of the others are read.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "tests/support/kafka_source_fixture.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::stream;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

constexpr int good = 1;
constexpr int bad = 2;
/// The guarantee, plus time for a loaded machine.
constexpr Duration named_within = 30s;

/// Topic "t": the good broker leads partition 0, the bad one partition 1; ten records in each.
std::unique_ptr<EmbeddedBroker> two_brokers() {
  auto cluster = EmbeddedBroker::start({{"t", 2}}, 2);
  REQUIRE_MESSAGE(cluster, cluster.error().message);
  cluster.value()->set_leader("t", 1, bad);
  std::vector<TestRecord> records;
  for (int p = 0; p < 2; ++p)
    for (int i = 0; i < 10; ++i) records.push_back({.value = std::to_string(i), .partition = p});
  REQUIRE(testing::produce(cluster.value()->bootstrap_servers(), "t", records));
  return std::move(cluster).value();
}

/// Reads both partitions; counts records of each and the maximum time of a poll.
struct Reader {
  explicit Reader(const EmbeddedBroker& cluster) : opened(config_of(cluster)) {}
  static testing::KafkaReading config_of(const EmbeddedBroker& cluster) {
    auto config = config_for(cluster.bootstrap_servers(), "t");
    config.partitions.push_back({"t", {0, 1}});
    return config;
  }
  void poll() {
    const TimePoint began = opened.clock.now();
    const auto records = opened.source->poll(100, 10ms);
    longest = std::max(longest, opened.clock.now() - began);
    if (!records) {
      if (records.error().code != ErrorCode::source_lost) error = records.error().message;
      return;
    }
    for (const auto& record : records.value()) ++got[record.partition.partition];
  }
  bool until(const std::function<bool()>& done, Duration deadline) {
    return wait_until(
        [&] {
          poll();
          return done();
        },
        deadline);
  }
  [[nodiscard]] const std::string& unreached(std::size_t partition) const {
    return opened.source->partitions()[partition].unreached;
  }
  Opened opened;
  std::map<int, int> got;
  Duration longest{};
  std::string error;
};

/// With a broker that does not answer, calls without a timeout return after a minute.
constexpr Duration no_minute = 50s;

}  // namespace

TEST_CASE(
    "Kafka source: of two brokers one is silent from the start: the other's partition is read, this one "
    "is named, and read when it answers") {
  const auto cluster = two_brokers();
  cluster->set_silent(bad, true);
  Reader reader(*cluster);
  CHECK(reader.until([&] { return reader.got[0] == 10; }, named_within));
  CHECK(reader.until([&] { return !reader.unreached(1).empty(); }, named_within));
  CAPTURE(reader.unreached(1));
  CHECK(contains(reader.unreached(1),
                 "topic \"t\", partition 1: no leader answers: broker 2 advertises the address 127.0.0.1:"));
  CHECK(reader.unreached(0).empty());
  CHECK(reader.error.empty());
  CHECK(reader.longest < no_minute);
  cluster->set_silent(bad, false);
  cluster->set_down(bad, true);  // its answer to the pending request would come in a minute
  cluster->set_down(bad, false);
  CHECK(reader.until([&] { return reader.got[1] == 10; }, named_within));
  CHECK(reader.unreached(1).empty());
  CHECK(reader.got[0] == 10);
}

TEST_CASE("Kafka source: of two brokers one refuses connections: its words are in what names it") {
  const auto cluster = two_brokers();
  cluster->set_down(bad, true);
  Reader reader(*cluster);
  CHECK(reader.until([&] { return reader.got[0] == 10; }, named_within));
  CHECK(reader.until([&] { return contains(reader.unreached(1), "Connection refused"); }, named_within));
  CAPTURE(reader.unreached(1));
  CHECK(contains(reader.unreached(1), "broker 2 advertises the address 127.0.0.1:"));
  CHECK(reader.longest < no_minute);
}

TEST_CASE(
    "Kafka source: of two brokers one falls silent while it is read: it is named, and the other is read on") {
  const auto cluster = two_brokers();
  Reader reader(*cluster);
  REQUIRE(reader.until([&] { return reader.got[0] == 10 && reader.got[1] == 10; }, named_within));
  CHECK(reader.unreached(1).empty());
  cluster->set_silent(bad, true);
  CHECK(reader.until([&] { return !reader.unreached(1).empty(); }, named_within));
  CAPTURE(reader.unreached(1));
  CHECK(contains(reader.unreached(1), "broker 2 advertises the address 127.0.0.1:"));
  CHECK(reader.unreached(0).empty());
  CHECK(reader.opened.source->partitions()[1].stopped.empty());
  REQUIRE(testing::produce(cluster->bootstrap_servers(), "t", numbered(10, 5)));
  CHECK(reader.until([&] { return reader.got[0] == 15; }, named_within));
  // The new leader of the partition is used.
  cluster->set_leader("t", 1, good);
  CHECK(reader.until([&] { return reader.unreached(1).empty(); }, named_within));
  CHECK(reader.longest < no_minute);
}

TEST_CASE("Kafka source: when no leader answers, the error at the start names who and where") {
  const auto cluster = two_brokers();
  cluster->set_silent(bad, true);
  auto config = config_for(cluster->bootstrap_servers(), "t", 1);
  Opened opened(config);
  CHECK(opened.read(1, named_within).empty());
  REQUIRE(opened.errors.size() == 1);
  CHECK(opened.errors[0].code == ErrorCode::unavailable);
  CAPTURE(opened.errors[0].message);
  CHECK(contains(opened.errors[0].message,
                 "topic \"t\", partition 1: no leader answers: broker 2 advertises the address 127.0.0.1:"));
}
