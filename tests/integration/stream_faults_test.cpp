// Unobserved changes of a log on a real Apache Kafka: its beginning is deleted before it was read, it loses
// its end, its topic is deleted and recreated.
#include <doctest/doctest.h>

#include "core/clock.h"
#include "stream/open.h"
#include "tests/support/assigned.h"
#include "tests/support/counting_metrics.h"
#include "tests/support/device_group.h"
#include "tests/support/kafka_client.h"
#include "tests/support/kafka_log_world.h"
#include "tests/support/shared_kafka.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

void must(const Status& status) {
  REQUIRE_MESSAGE(status, status.error().message);
}

void make(const std::string& topic) {
  must(create_topic(shared_kafka().brokers(), topic, 2));
}

/// Adds `count` records "WORD 0", "WORD 1", ... to both partitions.
void fill(const std::string& topic, const std::string& word, int count) {
  std::vector<TestRecord> records;
  for (int p = 0; p < 2; ++p)
    for (int i = 0; i < count; ++i) records.push_back({word + " " + std::to_string(i), "", p});
  must(testing::produce(shared_kafka().brokers(), topic, records));
}

void cut(const std::string& topic, int partition, std::int64_t before) {
  must(delete_records(shared_kafka().brokers(), topic, partition, before));
}

void make_anew(const std::string& topic) {
  must(delete_topic(shared_kafka().brokers(), topic));
  make(topic);
}

KafkaReading reader_of(const std::string& topic) {
  KafkaReading config;
  config.properties = {{"bootstrap.servers", shared_kafka().brokers()}};
  config.group_id = "rivulet.t";
  config.partitions = {{topic, {0, 0}}, {topic, {0, 1}}};
  config.anchor_every = 500ms;
  config.anchor_defer_max = 60s;  // a slow machine answers late
  return config;
}

/// Reads a source in place of the train thread, and collects records by partition.
struct Reader {
  RealClock clock;
  CountingMetrics metrics;
  std::unique_ptr<stream::RecordSource> source;
  std::map<PartitionId, std::vector<std::pair<std::int64_t, std::string>>> got;
  std::vector<stream::Gap> gaps;

  explicit Reader(const KafkaReading& config) {
    auto opened = config.open(clock, metrics);
    REQUIRE_MESSAGE(opened, opened.error().message);
    source = std::move(opened).value();
  }
  void poll(std::size_t most = 100) {
    const auto records = source->poll(most, 10ms);
    if (!records) {
      CHECK_MESSAGE(records.error().code == ErrorCode::source_lost, records.error().message);
      return;
    }
    for (const auto& gap : source->take_gaps()) {
      gaps.push_back(gap);
    }
    for (const auto& record : records.value())
      got[record.partition].emplace_back(
          record.offset,
          std::string(reinterpret_cast<const char*>(record.value.data()), record.value.size()));
  }
  bool until(const std::function<bool()>& done, Duration deadline = 15s) {
    return wait_until(
        [&] {
          poll();
          return done();
        },
        deadline);
  }
  /// A fixed time without deadline_slack: no event ends it.
  void during(Duration time) {
    for (const TimePoint end = clock.now() + time; clock.now() < end;) poll();
  }
  std::size_t count(int partition) { return got[{0, partition}].size(); }
  [[nodiscard]] const stream::PartitionState& state(int partition) const {
    return source->partitions()[static_cast<std::size_t>(partition)];
  }
};

}  // namespace

TEST_CASE("Real Kafka: rows that retention cut before they were read stop their partition, and only that") {
  make("cut");
  fill("cut", "row", 50);
  cut("cut", 0, 30);
  auto config = reader_of("cut");
  config.resume = {{{0, 0}, 10}, {{0, 1}, 10}};
  Reader reader(config);
  REQUIRE(reader.until([&] { return reader.count(1) == 40; }));
  reader.during(300ms);
  CHECK(reader.count(0) == 0);
  CAPTURE(reader.state(0).stopped);
  CHECK(contains(
      reader.state(0).stopped,
      "topic \"cut\", partition 0: offset 10 does not exist (log start offset 30, end offset 50): 20 offsets "
      "were deleted before they were read"));
  CHECK(reader.state(1).stopped.empty());
  CHECK(reader.gaps.empty());
  // A new offset makes it read again; the same offset leaves it stopped.
  const NextOffset same[] = {{{0, 0}, 10}, {{0, 1}, 45}};
  must(testing::seek(*reader.source, same));
  REQUIRE(reader.until([&] { return reader.count(1) == 45; }));
  CHECK(contains(reader.state(0).stopped, "offset 10 does not exist"));
  const NextOffset there[] = {{{0, 0}, 40}};
  must(testing::seek(*reader.source, there));
  REQUIRE(reader.until([&] { return reader.count(0) == 10; }));
  CHECK(reader.state(0).stopped.empty());
}

TEST_CASE("Real Kafka: what is not committed, and what the client tells of its broker and its queue") {
  make("told");
  fill("told", "row", 50);
  auto config = reader_of("told");
  config.properties.emplace_back("statistics.interval.ms", "100");
  Reader reader(config);
  auto& metrics = reader.metrics;
  REQUIRE(reader.until([&] { return reader.count(0) == 50 && reader.count(1) == 50; }));
  const NextOffset some[] = {{{0, 0}, 20}, {{0, 1}, 50}};
  must(reader.source->commit(some));
  REQUIRE(reader.until([&] { return metrics.has("kafka_consumer_lag_records/told/0"); }));
  CHECK(metrics["kafka_consumer_lag_records/told/0"] == 30);
  CHECK(metrics["kafka_consumer_lag_records/told/1"] == 0);
  CHECK(metrics["kafka_processed_lag_records/told/0"] == 0);
  CHECK(reader.until(
      [&] { return metrics["kafka_brokers_up"] == 1 && metrics.has("kafka_broker_rtt_seconds/1"); }));
  CHECK(metrics["kafka_broker_rtt_seconds/1"] > 0);
  CHECK(metrics["kafka_broker_rtt_seconds/1"] < testing::deadline_slack * 2);
  CHECK(metrics["kafka_throttle_seconds"] == 0);
  CHECK(metrics.has("kafka_fetch_queue_records"));
  CHECK(metrics.has("kafka_fetch_queue_bytes"));
}

TEST_CASE("Real Kafka: with on_gap = count a cut is gone over and handed out as a gap, once, in its place") {
  make("counted");
  fill("counted", "row", 50);
  cut("counted", 0, 20);
  auto config = reader_of("counted");
  config.count_gaps = true;
  config.resume = {{{0, 0}, 5}};
  config.properties.emplace_back("queued.max.messages.kbytes", "1");
  Reader reader(config);
  REQUIRE(reader.until([&] { return reader.count(0) == 30 && reader.count(1) == 50; }));
  CHECK(reader.gaps == std::vector<stream::Gap>{{{0, 0}, 5, 20}});
  // Also while it runs: paused, so that its queue is dropped. The cut exceeds the next offset.
  const auto pause = [&] {
    for (int i = 0; i < 20; ++i) {
      reader.poll(0);
      std::this_thread::sleep_for(5ms);
    }
  };
  pause();
  fill("counted", "more", 50);
  cut("counted", 0, 90);
  REQUIRE(reader.until([&] { return reader.count(0) == 40 && reader.count(1) == 100; }));
  REQUIRE(reader.gaps.size() == 2);
  CHECK(reader.gaps[1] == stream::Gap{{0, 0}, 50, 90});
  CHECK(reader.state(0).skipped == 55);
  CHECK(reader.got[{0, 0}][30] == std::pair<std::int64_t, std::string>{90, "more 40"});
  // An offset below both cuts: one gap. The pause before it must not outlive the seek.
  pause();
  fill("counted", "last", 50);
  cut("counted", 0, 140);
  const NextOffset back[] = {{{0, 0}, 70}};
  must(testing::seek(*reader.source, back));
  REQUIRE(reader.until([&] { return reader.count(0) == 50; }));
  CHECK(reader.gaps.back() == stream::Gap{{0, 0}, 70, 140});
}

TEST_CASE("Real Kafka: a state beyond the end of the log stops the partition, whatever the policy") {
  make("short");
  fill("short", "row", 20);
  auto config = reader_of("short");
  config.count_gaps = true;
  config.resume = {{{0, 0}, 100}};
  Reader reader(config);
  REQUIRE(reader.until([&] { return reader.count(1) == 20; }));
  CHECK(contains(
      reader.state(0).stopped,
      "topic \"short\", partition 0: offset 100 does not exist (log start offset 0, end offset 20): the log "
      "has lost its last records"));
  fill("short", "later", 200);  // it grows beyond the offset, and is still not read
  REQUIRE(reader.until([&] { return reader.count(1) == 220; }));
  CHECK(reader.count(0) == 0);
  CHECK(reader.gaps.empty());
}

TEST_CASE("Real Kafka: a topic made anew while it is read stops, shorter or longer than the old one") {
  make("anew");
  fill("anew", "old", 50);
  auto config = reader_of("anew");
  config.count_gaps = true;
  Reader reader(config);
  REQUIRE(reader.until([&] { return reader.count(0) == 50 && reader.count(1) == 50; }));
  reader.during(1500ms);
  make_anew("anew");
  std::vector<TestRecord> records;
  records.reserve(110);
  for (int i = 0; i < 80; ++i) records.push_back({"new " + std::to_string(i), "", 0});
  for (int i = 0; i < 30; ++i) records.push_back({"new " + std::to_string(i), "", 1});
  must(testing::produce(shared_kafka().brokers(), "anew", records));
  std::this_thread::sleep_for(1s);  // its trust in the log lasts 0.7 s
  REQUIRE(reader.until([&] { return !reader.state(0).stopped.empty() && !reader.state(1).stopped.empty(); }));
  CAPTURE(reader.state(0).stopped);
  CAPTURE(reader.state(1).stopped);
  CHECK(contains(reader.state(0).stopped, "topic \"anew\", partition 0: this is not the log that was read"));
  CHECK(contains(reader.state(0).stopped,
                 "stopped at offset 50 (log start offset 0, end offset "));  // 80, in the end
  // The broker decides what is detected first: the shorter log, or another one.
  const bool another = contains(reader.state(1).stopped, "partition 1: this is not the log that was read");
  CHECK(contains(reader.state(1).stopped, another
                                              ? "stopped at offset 50 (log start offset 0, end offset "
                                              : "offset 50 does not exist (log start offset 0, end offset "));
  CHECK(reader.count(0) == 50);  // no record of the new topic
  CHECK(reader.count(1) == 50);
  // A seek does not help: neither to the same offset, nor after the new log has grown beyond it.
  fill("anew", "newer", 40);
  const NextOffset same[] = {{{0, 0}, 50}, {{0, 1}, 50}};
  must(testing::seek(*reader.source, same));
  CHECK(reader.until([&] { return contains(reader.state(1).stopped, "this is not the log"); }));
  reader.during(1s);
  CHECK(reader.count(0) == 50);
  CHECK(reader.count(1) == 50);
  CHECK_FALSE(reader.state(0).stopped.empty());
  CHECK(reader.gaps.empty());
}

TEST_CASE("Real Kafka: a topic made anew under a partition to which nothing comes is found out, too") {
  make("idle-anew");
  fill("idle-anew", "old", 20);
  Reader reader(reader_of("idle-anew"));
  REQUIRE(reader.until([&] { return reader.count(0) == 20 && reader.count(1) == 20; }));
  make_anew("idle-anew");
  fill("idle-anew", "new", 20);  // the next offset is also the end of this log: the broker reports no error
  REQUIRE(reader.until([&] { return !reader.state(0).stopped.empty() && !reader.state(1).stopped.empty(); }));
  CHECK(contains(reader.state(0).stopped, "this is not the log that was read"));
  CHECK(reader.count(0) == 20);
}

TEST_CASE("Real Kafka: records behind an open transaction are held back, and the source says so") {
  make("held");
  fill("held", "free", 10);
  auto config = reader_of("held");
  config.properties.emplace_back("statistics.interval.ms", "200");
  Reader reader(config);
  REQUIRE(reader.until([&] { return reader.count(0) == 10 && reader.count(1) == 10; }));
  CHECK(reader.state(0).blocked_from == -1);
  {
    auto open = OpenTransaction::begin(shared_kafka().brokers(), "held", {{"inside"}});
    REQUIRE_MESSAGE(open, open.error().message);
    fill("held", "behind", 5);
    REQUIRE(reader.until([&] { return reader.state(0).blocked_from == 10; }));
    CHECK(reader.state(0).high_watermark >= 11);
    CHECK(reader.state(1).blocked_from == -1);
    CHECK(reader.count(0) == 10);
    must(open.value()->commit());
  }
  REQUIRE(reader.until([&] { return reader.count(0) == 16 && reader.state(0).blocked_from == -1; }));
}

TEST_CASE("Real Kafka: peek ends at the last record, whatever transactions left behind it") {
  const std::string brokers = shared_kafka().brokers();
  const auto peek = [&](const std::string& topic) {
    return run_rivulet({"peek", topic, "--brokers", brokers, "--partitions", "all"}, 30s);
  };
  make("marks");
  fill("marks", "1,2,3", 4);
  must(produce_and_abort(brokers, "marks", {{"never"}}));
  const auto behind_mark = peek("marks");
  CHECK(behind_mark.status.code == 0);
  CHECK_MESSAGE(contains(behind_mark.output, "8 dropped"), behind_mark.output);
  make("open");
  fill("open", "1,2,3", 4);
  auto open = OpenTransaction::begin(brokers, "open", {{"inside"}});
  REQUIRE_MESSAGE(open, open.error().message);
  const auto before_open = peek("open");
  CHECK(before_open.status.code == 0);
  CHECK_MESSAGE(contains(before_open.output, "8 dropped"), before_open.output);
}

TEST_CASE("Real Kafka: a topic made anew while nobody reads is found out at the next start") {
  const TempDir folder;
  make("away");
  fill("away", "old", 50);
  auto config = reader_of("away");
  config.anchor_file = (folder.path() / "anchors").string();
  {
    Reader reader(config);
    REQUIRE(reader.until([&] { return reader.count(0) == 50 && reader.count(1) == 50; }));
  }
  config.resume = {{{0, 0}, 45}, {{0, 1}, 45}};
  {
    Reader reader(config);  // the same log: no message
    REQUIRE(reader.until([&] { return reader.count(0) == 5 && reader.count(1) == 5; }));
    CHECK(reader.got[{0, 0}][0].second == "old 45");
  }
  make_anew("away");
  fill("away", "new", 60);
  {
    Reader reader(config);
    REQUIRE(
        reader.until([&] { return !reader.state(0).stopped.empty() && !reader.state(1).stopped.empty(); }));
    reader.during(500ms);
    CHECK(reader.count(0) == 0);
    CHECK(reader.count(1) == 0);
    CHECK(contains(reader.state(0).stopped, "this is not the log that was read before"));
  }
  {
    config.resume.clear();  // a new run: positions of an earlier one do not count
    Reader reader(config);
    REQUIRE(reader.until([&] { return reader.count(0) == 60 && reader.count(1) == 60; }));
    CHECK(reader.state(0).stopped.empty());
  }
}

TEST_CASE("Real Kafka: a record that retention or compaction took away is not a sign of another log") {
  const TempDir folder;
  make("aged");
  fill("aged", "old", 50);
  auto config = reader_of("aged");
  config.anchor_file = (folder.path() / "anchors").string();
  {
    Reader reader(config);
    REQUIRE(reader.until([&] { return reader.count(0) == 50; }));
  }
  fill("aged", "more", 50);
  cut("aged", 0, 60);
  config.resume = {{{0, 0}, 60}};
  Reader reader(config);
  REQUIRE(reader.until([&] { return reader.count(0) == 40; }));
  CHECK(reader.state(0).stopped.empty());
}

TEST_CASE("Real Kafka: whatever lies in the control topic, reading goes on behind it") {
  const std::string topic = "rivulet.odd.control";
  const std::string brokers = shared_kafka().brokers();
  must(create_topic(brokers, topic, 1, {{"max.message.bytes", "8000000"}}));
  const std::string garbage(6'000'000, '\xff');  // more than the client's whole queue
  must(testing::produce(
      brokers, topic,
      {{.value = "first"},
       {.value = garbage},
       {.tombstone = true},
       {.value = ""},
       {.value = "headed", .key = std::string(2000, 'k'), .headers = {{"magic", "\xff\xff"}}},
       {.value = garbage}}));
  must(produce_and_abort(brokers, topic, {{.value = "never"}}));
  must(testing::produce(brokers, topic, {{.value = "last"}}));
  auto world = kafka_log_world(brokers, topic);
  const auto log = world.open();
  const auto texts = read_log(world, *log, 7, 3);
  REQUIRE(texts.size() == 7);
  CHECK(texts[0] == "first");
  CHECK(texts[1] == garbage);
  CHECK(texts[2].empty());
  CHECK(texts[3].empty());
  CHECK(texts[4] == "headed");
  CHECK(texts[5] == garbage);
  CHECK(texts[6] == "last");
  // The marker of the aborted transaction may follow the last record.
  CHECK(wait_until([&] { return log->poll(3) && log->caught_up(); }, 10s));
  // The log's own large records pass, too.
  REQUIRE(log->append(std::vector<std::byte>(900'000)));
  REQUIRE(log->append(bytes_of_text("after")));
  CHECK(read_log(world, *log, 2)[1] == "after");
}

TEST_CASE(
    "Real Kafka: a control topic that was made just now is waited for, whatever the start has left of its "
    "time") {
  const std::string topic = "rivulet.made.control";
  const auto opened = stream::open_kafka_log({.properties = {{"bootstrap.servers", shared_kafka().brokers()}},
                                              .topic = topic,
                                              .client_id = "t",
                                              .open_deadline = 1ms});
  REQUIRE(opened);
  REQUIRE(opened.value()->append(bytes_of_text("first")));
  auto world = kafka_log_world(shared_kafka().brokers(), topic);
  CHECK(read_log(world, *opened.value(), 1) == std::vector<std::string>{"first"});
}

TEST_CASE("Real Kafka: a control topic that loses what comes next is an error, not a silence") {
  const std::string topic = "rivulet.lost.control";
  const std::string brokers = shared_kafka().brokers();
  must(create_topic(brokers, topic, 1));
  auto world = kafka_log_world(brokers, topic);
  const auto log = world.open();
  for (int i = 0; i < 5; ++i) REQUIRE(log->append(bytes_of_text(std::to_string(i))));
  REQUIRE(read_log(world, *log, 5).size() == 5);
  must(delete_topic(brokers, topic));
  must(create_topic(brokers, topic, 1));
  must(testing::produce(brokers, topic, {{.value = "another"}}));
  const Error error = log_error(*log, 15s);
  CAPTURE(error.message);
  CHECK(error.code == ErrorCode::bad_record);
  CHECK(contains(error.message, "topic \"rivulet.lost.control\": offset 5 no longer exists"));
  CHECK(log_error(*log, 100ms).message == error.message);  // permanently
}
