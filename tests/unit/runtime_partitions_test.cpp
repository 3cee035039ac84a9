#include <doctest/doctest.h>

#include "runtime/ingest/partition_watch.h"
#include "stream/open.h"
#include "tests/support/wrapped_source.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace std::chrono_literals;

namespace {

/// Two partitions whose states the test sets.
struct Told final : testing::WrappedSource {
  explicit Told(const Clock& clock)
      : WrappedSource(stream::open_scripted_source({{0, 0}, {1, 4}}, {}, clock)),
        states{{.id = {0, 0}, .next_offset = 7, .low_watermark = 0, .high_watermark = 9},
               {.id = {1, 4}, .next_offset = 5, .low_watermark = 0, .high_watermark = 5}} {}
  [[nodiscard]] std::span<const stream::PartitionState> partitions() const noexcept override {
    return states;
  }
  [[nodiscard]] std::string_view unreachable() const noexcept override { return trouble; }
  std::vector<stream::PartitionState> states;
  std::string trouble;
};

struct PartitionLines final : Logger {
  void write(Level level, std::string_view message, const Fields& fields) override {
    std::string line(level == Level::error ? "error: " : level == Level::warn ? "warn: " : "info: ");
    line += message;
    for (const auto& [key, value] : fields) line += " " + std::string(key) + "=" + value;
    all.push_back(line);
  }
  std::vector<std::string> all;
};

/// The first of them alone, and its watch.
struct OnePartition {
  VirtualClock clock;
  NodeStatus status;
  PartitionLines log;
  Told source{clock};
  PartitionWatch watch{{"a"}, status, log};
  OnePartition() { source.states.pop_back(); }
};

}  // namespace

TEST_CASE("Partitions: each is on the status page, and what happens to one is said once") {
  VirtualClock clock;
  NodeStatus status;
  PartitionLines log;
  Told source(clock);
  PartitionWatch watch({"a", "b"}, status, log);
  TimePoint now(1s);
  const auto look = [&] {
    now += 1s;
    for (int i = 0; i < 3; ++i) watch.look(source, now += 600ms);
    return std::exchange(log.all, {});
  };
  CHECK(look().empty());
  REQUIRE(status.partitions().size() == 2);
  CHECK(status.partitions()[0].topic == "a");
  CHECK(status.partitions()[0].state == "reading");
  CHECK(status.partitions()[1].topic == "b");
  CHECK(status.partitions()[1].partition == 4);
  CHECK(status.partitions()[1].high_watermark == 5);

  source.states[0].stopped = "offset 7 is not there";
  source.states[0].low_watermark = 8;
  CHECK(look() ==
        std::vector<std::string>{"error: offset 7 is not there topic=a partition=0 offset=7 low=8 high=9"});
  CHECK(status.partitions()[0].state == "stopped");
  CHECK(status.partitions()[0].reason == "offset 7 is not there");
  CHECK(status.partitions()[1].state == "reading");

  source.states[1].skipped = 3;
  source.states[1].paused = true;
  CHECK(look() ==
        std::vector<std::string>{"warn: offsets deleted before they were read are skipped (source.on_gap = "
                                 "\"count\") topic=b partition=4 offset=5 low=0 high=5 offsets=3"});
  CHECK(status.partitions()[1].state == "paused");

  source.states[1].stopped = "another log";
  CHECK(look() ==
        std::vector<std::string>{
            "error: another log topic=b partition=4 offset=5 low=0 high=5",
            "error: every partition of this device is stopped: the device stays in the group without rows"});
  source.states[0].stopped.clear();
  CHECK(look() ==
        std::vector<std::string>{"info: a stopped partition is read again topic=a partition=0 offset=7 "
                                 "low=8 high=9"});
}

TEST_CASE(
    "Partitions: one whose leader does not answer is named once, shown with the reason, and its lag is not "
    "known") {
  OnePartition one;
  auto& [clock, status, log, source, watch] = one;
  TimePoint now(1s);
  source.states[0].unreached = "no leader answers: broker 2";
  watch.look(source, now);
  source.states[0].unreached = "no leader answers: broker 2 (refused)";  // another text for the same problem
  watch.look(source, now += 1s);
  CHECK(std::exchange(log.all, {}) ==
        std::vector<std::string>{
            "warn: no leader answers: broker 2 topic=a partition=0 offset=7 low=0 high=9"});
  CHECK(status.partitions()[0].state == "unreachable");
  CHECK(status.partitions()[0].reason == "no leader answers: broker 2 (refused)");
  CHECK(status.lag_records == -1);
  source.states[0].unreached.clear();
  watch.look(source, now += 1s);
  CHECK(std::exchange(log.all, {}) ==
        std::vector<std::string>{
            "info: the leader of a partition answers again topic=a partition=0 offset=7 low=0 high=9"});
  CHECK(status.partitions()[0].state == "reading");
  CHECK(status.lag_records == 2);
}

TEST_CASE("Partitions: while nobody has the log, the page says so, and that the lag is not known") {
  VirtualClock clock;
  NodeStatus status;
  PartitionLines log;
  Told source(clock);
  PartitionWatch watch({"a", "b"}, status, log);
  watch.look(source, TimePoint(1s));
  CHECK(status.lag_records == 2);
  CHECK(status.source_trouble().empty());
  source.trouble = "no broker of kafka:9092 can be reached (refused)";
  watch.look(source, TimePoint(2s));
  CHECK(status.lag_records == -1);
  CHECK(status.source_trouble() == source.trouble);
  source.trouble.clear();
  watch.look(source, TimePoint(3s));
  CHECK(status.lag_records == 2);
  CHECK(status.source_trouble().empty());
  source.states[0].high_watermark = -1;
  watch.look(source, TimePoint(4s));
  CHECK(status.lag_records == -1);
}

TEST_CASE(
    "Partitions: what an open transaction holds back is not lag, is shown, and said when nobody ends it") {
  OnePartition one;
  auto& [clock, status, log, source, watch] = one;
  source.states[0].high_watermark = 40;
  source.states[0].blocked_from = 9;
  TimePoint now(1s);
  watch.look(source, now);
  CHECK(status.lag_records == 2);
  const std::string words = "an open transaction blocks 31 records from offset 9 on";
  CHECK(status.partitions()[0].reason == words);
  CHECK(status.partitions()[0].state == "reading");
  watch.look(source, now += 19s);
  CHECK(log.all.empty());  // transactions take a moment
  watch.look(source, now += 1s);
  watch.look(source, now += 60s);
  CHECK(log.all == std::vector<std::string>{"warn: " + words +
                                            ": the producer that began it must commit or abort it topic=a "
                                            "partition=0 offset=7 low=0 high=40"});
  log.all.clear();
  source.states[0].blocked_from = -1;
  watch.look(source, now += 1s);
  CHECK(status.lag_records == 33);
  CHECK(status.partitions()[0].reason.empty());
  CHECK(log.all == std::vector<std::string>{"info: the transaction has ended: records arrive again topic=a "
                                            "partition=0 offset=7 low=0 high=40"});
}

TEST_CASE("Partitions: one that is read to its end and gets no more says so once, the rarer the more often") {
  OnePartition one;
  auto& [clock, status, log, source, watch] = one;
  TimePoint now(1s);
  const auto seconds_until_said = [&](int most) {
    for (int second = 1; second <= most; ++second) {
      watch.look(source, now += 1s);
      if (!std::exchange(log.all, {}).empty()) return second;
    }
    return -1;
  };
  CHECK(seconds_until_said(100) == -1);  // two records are still unread
  source.states[0].next_offset = 9;
  watch.look(source, now += 1s);
  for (int i = 0; i < 9; ++i) watch.look(source, now += 1s);
  CHECK(log.all.empty());
  watch.look(source, now += 1s);
  CHECK(std::exchange(log.all, {}) ==
        std::vector<std::string>{"info: no more records: all records of the partition are read, and no "
                                 "new ones arrive topic=a partition=0 offset=9 low=0 high=9"});
  CHECK(seconds_until_said(100) == -1);
  // Each time that records arrive, and then stop.
  std::vector<int> waits;
  for (int i = 0; i < 12; ++i) {
    ++source.states[0].next_offset;
    ++source.states[0].high_watermark;
    waits.push_back(seconds_until_said(10'000));
  }
  CHECK(waits.front() == 21);
  CHECK(waits[1] == 41);
  CHECK(waits.back() == 3601);
}
