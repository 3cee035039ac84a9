#include <doctest/doctest.h>

#include "tests/support/kafka_source_fixture.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::stream;
using namespace rivulet::testing;
using namespace std::chrono_literals;

TEST_CASE("Kafka source: earliest, latest and an offset, each without the half second of a logical start") {
  const auto broker = start_broker({{"t", 1}});
  REQUIRE(testing::produce(broker->bootstrap_servers(), "t", numbered(0, 50)));
  auto config = config_for(broker->bootstrap_servers(), "t");
  const RealClock clock;
  // A logical start always costs its half second, a loaded machine only sometimes: one quick attempt is
  // proof.
  const auto first_of = [&](StartOffset start) {
    config.start = start;
    std::string value;
    bool quick = false;
    for (int attempt = 0; attempt < 5 && !quick; ++attempt) {
      Opened opened(config);
      const TimePoint began = clock.now();
      value = opened.read(1, 3s).at(0);
      quick = clock.now() - began < 400ms;
      CHECK(opened.timestamps == std::vector<std::int64_t>{1'700'000'000'000 + std::stoi(value)});
    }
    CHECK(quick);
    return value;
  };
  CHECK(first_of({.kind = StartOffset::Kind::earliest}) == "0");
  CHECK(first_of({.kind = StartOffset::Kind::absolute, .offset = 17}) == "17");
  config.resume = {{{0, 0}, 49}};
  CHECK(first_of({.kind = StartOffset::Kind::absolute, .offset = 17}) == "49");
  config.resume.clear();
  config.start = {.kind = StartOffset::Kind::latest};
  Opened latest(config);
  CHECK(latest.read(1, 200ms).empty());
  CHECK(latest.source->partitions()[0].next_offset == 50);
  REQUIRE(testing::produce(broker->bootstrap_servers(), "t", numbered(50, 1)));
  CHECK(latest.read(1, 3s) == std::vector<std::string>{"50"});
}

TEST_CASE(
    "Kafka source: an offset the broker does not have stops its partition with a sentence, until a seek") {
  const auto broker = start_broker({{"t", 2}});
  const std::string servers = broker->bootstrap_servers();
  REQUIRE(testing::produce(servers, "t", numbered(0, 20)));
  REQUIRE(testing::produce(servers, "t", {{.value = "other", .partition = 1}}));
  auto config = config_for(servers, "t");
  config.partitions.push_back({"t", {0, 1}});
  config.resume = {{{0, 0}, 500}};
  Opened opened(config);
  CHECK(opened.read(1, 3s) == std::vector<std::string>{"other"});  // the other one is read
  CHECK(opened.source->partitions()[1].stopped.empty());
  const auto& stopped = opened.source->partitions()[0];
  CAPTURE(stopped.stopped);
  CHECK(
      contains(stopped.stopped,
               "topic \"t\", partition 0: offset 500 does not exist (log start offset 0, end offset 20): "));
  CHECK(stopped.next_offset == 500);
  CHECK(stopped.high_watermark == 20);
  CHECK(opened.metrics["kafka_stopped_partition/t/0"] == 1);
  CHECK(opened.metrics["kafka_stopped_partition/t/1"] == 0);
  const NextOffset there[] = {{{0, 0}, 18}};
  REQUIRE(testing::seek(*opened.source, there));
  CHECK(opened.read(2, 5s) == std::vector<std::string>{"18", "19"});
  CHECK(opened.source->partitions()[0].stopped.empty());
  CHECK(opened.metrics["kafka_stopped_partition/t/0"] == 0);
  const NextOffset too_far[] = {{{0, 0}, 700}};
  REQUIRE(testing::seek(*opened.source, too_far));
  CHECK(opened.read(1, 2s).empty());
  CHECK(contains(opened.source->partitions()[0].stopped, "offset 700 does not exist"));
  const NextOffset back[] = {{{0, 0}, 3}};
  REQUIRE(testing::seek(*opened.source, back));
  CHECK(opened.read(1, 5s) == std::vector<std::string>{"3"});
  CHECK(opened.errors.empty());
}

TEST_CASE(
    "Kafka source: data the broker has thrown away stops the partition, or is counted; never a silent jump") {
  const auto broker = start_broker({{"t", 1}});
  const std::string servers = broker->bootstrap_servers();
  REQUIRE(testing::produce(servers, "t", numbered(0, 100)));
  auto config = config_for(servers, "t");
  config.properties.emplace_back("queued.max.messages.kbytes", "64");
  Opened stops(config);
  config.count_gaps = true;
  Opened counts(config);
  for (Opened* opened : {&stops, &counts}) {
    CHECK(opened->read(10, 3s).size() == 10);
    for (int i = 0; i < 60; ++i)
      REQUIRE(opened->source->poll(0, 5ms));  // paused: fetched records are dropped
  }
  for (int i = 0; i < 8; ++i) REQUIRE(testing::produce(servers, "t", numbered(100 + 10 * i, 10, 90'000)));
  stops.read(1000, 2s);
  const auto& stopped = stops.source->partitions()[0];
  CAPTURE(stopped.stopped);
  CHECK(contains(stopped.stopped, "offset " + std::to_string(stopped.next_offset) + " does not exist"));
  CHECK(contains(stopped.stopped, "retention"));
  CHECK(stops.source->take_gaps().empty());
  std::size_t got = 0;
  for (int tries = 0; tries < 60 && counts.source->partitions()[0].next_offset < 180; ++tries)
    got += counts.read(20, 1s).size();
  const auto gaps = counts.source->take_gaps();
  REQUIRE(gaps.size() == 1);
  // Positions of both; records in flight at the pause may have arrived.
  CHECK(gaps[0].from >= 100);
  CHECK(stopped.next_offset >= 100);
  CHECK(gaps[0].to == stopped.low_watermark);
  CHECK(static_cast<std::int64_t>(got) + 10 + gaps[0].to - gaps[0].from == 180);
  CHECK(counts.source->take_gaps().empty());  // exactly once
  CHECK(counts.source->partitions()[0].skipped == gaps[0].to - gaps[0].from);
  CHECK(counts.metrics["kafka_gap_records_total/t/0"] == static_cast<double>(gaps[0].to - gaps[0].from));
}

TEST_CASE("Kafka source: seeks that follow each other at once read on from the last of them") {
  constexpr int partitions = 16;
  const auto broker = start_broker({{"t", partitions}});
  for (int partition = 0; partition < partitions; ++partition)
    REQUIRE(
        testing::produce(broker->bootstrap_servers(), "t",
                         {{.value = "a", .partition = partition}, {.value = "b", .partition = partition}}));
  auto config = config_for(broker->bootstrap_servers(), "t");
  config.partitions.clear();
  for (int partition = 0; partition < partitions; ++partition)
    config.partitions.push_back({"t", {0, partition}});
  Opened opened(config);
  CHECK(opened.read(2 * partitions, 10s).size() == 2 * partitions);
  std::vector<NextOffset> first;
  std::vector<NextOffset> second;
  for (int partition = 0; partition < partitions; ++partition) {
    first.push_back({{0, partition}, 0});
    second.push_back({{0, partition}, 1});
  }
  for (int again = 0; again < 20; ++again) {
    REQUIRE(testing::seek(*opened.source, first));
    REQUIRE(testing::seek(*opened.source, second));
  }
  CHECK(opened.read(partitions, 10s) == std::vector<std::string>(partitions, "b"));
  CHECK(opened.errors.empty());
}

TEST_CASE("Kafka source: of a partition that was given up nothing more is committed, and its gauges end") {
  const auto broker = start_broker({{"t", 2}});
  const std::string servers = broker->bootstrap_servers();
  for (int p = 0; p < 2; ++p) REQUIRE(testing::produce(servers, "t", {{.value = "x", .partition = p}}));
  auto config = config_for(servers, "t");
  config.partitions.push_back({"t", {0, 1}});
  Opened opened(config);
  CHECK(opened.read(2, 5s).size() == 2);
  const auto committed = [&](int partition, std::int64_t offset) {
    return testing::wait_until(
        [&] {
          static_cast<void>(opened.source->poll(0, 20ms));
          return committed_offset(servers, "rivulet.test", "t", partition).value() == offset;
        },
        20s);
  };
  const NextOffset both[] = {{{0, 0}, 1}, {{0, 1}, 1}};
  REQUIRE(opened.source->commit(both));
  REQUIRE(committed(0, 1));
  REQUIRE(opened.source->assign(testing::reads({{0, 1}})));
  CHECK_FALSE(opened.metrics.has("kafka_processed_lag_records/t/0"));
  CHECK(opened.metrics["kafka_assigned_partitions/t"] == 1);
  const NextOffset later[] = {{{0, 0}, 7}, {{0, 1}, 8}};
  REQUIRE(opened.source->commit(later));
  REQUIRE(committed(1, 8));
  CHECK(committed_offset(servers, "rivulet.test", "t", 0).value() == 1);
  CHECK(opened.errors.empty());
}
