// A control topic whose oldest records are deleted, on a real Apache Kafka: a later device begins at a SNAP.
// Also the cost of reading a complete one.
#include <doctest/doctest.h>

#include <unistd.h>

#include "core/clock.h"
#include "runtime/node/control_topic.h"
#include "sync/membership/log_reader.h"
#include "sync/membership/snapshot.h"
#include "tests/support/effort.h"
#include "tests/support/fold_script.h"
#include "tests/support/kafka_client.h"
#include "tests/support/kafka_log_world.h"
#include "tests/support/membership_group.h"
#include "tests/support/shared_kafka.h"
#include "tests/support/wait.h"
#include "tests/support/wrapped_log.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace rivulet::sync::membership;
using namespace std::chrono_literals;

namespace {

void must_do(const Status& status) {
  REQUIRE_MESSAGE(status, status.error().message);
}

std::string text_of_record(const ControlRecord& record, const std::string& job = "mnist") {
  const auto bytes = encode(record, job);
  REQUIRE_MESSAGE(bytes, bytes.error().message);
  return {reinterpret_cast<const char*>(bytes.value().data()), bytes.value().size()};
}

/// Devices with their own control topic, in real time.
struct GroupInKafka {
  explicit GroupInKafka(const std::string& name) : topic(name), world(kafka_log_world(brokers, topic)) {
    must_do(create_topic(brokers, topic, 1));
    group.open = world.open;
  }
  bool run_until(const std::function<bool()>& done) {
    const auto step = [&] {
      group.step(clock.now());
      return done();
    };
    return wait_until(step, 30s);
  }
  bool formed(std::uint64_t view) {
    return run_until([&] { return group.formed({"a", "b"}) && fold("a").view.number == view; });
  }
  const Fold& fold(const std::string& id) { return group.nodes.at(id).membership->fold(); }
  /// Offset of the first of them; the group appends nothing at the same time.
  std::int64_t put(const std::vector<std::string>& texts) {
    const auto first = watermarks(brokers, topic, 0).value().second;
    std::vector<TestRecord> records;
    records.reserve(texts.size());
    for (const auto& text : texts) records.push_back({.value = text});
    must_do(produce(brokers, topic, records));
    const auto end = first + static_cast<std::int64_t>(texts.size());
    REQUIRE(watermarks(brokers, topic, 0).value().second == end);
    return first;
  }

  const std::string brokers = shared_kafka().brokers();
  const std::string topic;
  RealClock clock;
  LogWorld world;
  MembershipGroup group;
};

/// Invalid SNAPs, one after the other from `offset` on, for an idle group.
std::vector<std::string> hostile_snaps(const Fold& fold, std::int64_t offset) {
  const auto session = fold.devices.at("a").session;
  const auto claim = [&](std::int64_t covers) {
    Fold false_fold = fold;
    false_fold.view.number += 7;
    false_fold.next_offset = covers;
    Snap snap{"a", session, covers, "", snapshot_of(false_fold)};
    snap.hash = snapshot_hash(snap.fold);
    return snap;
  };
  std::vector<std::string> texts{"{\"version\":1,\"job\":\"mnist\",\"type\":\"snap\"}"};
  const auto next = [&] { return offset + static_cast<std::int64_t>(texts.size()); };
  texts.push_back(text_of_record(claim(next()), "other"));
  Snap stranger = claim(next());
  stranger.device = "x";
  texts.push_back(text_of_record(stranger));
  texts.push_back(text_of_record(claim(next() - 100)));  // skips offsets that would be missing
  Snap unsigned_one = claim(next());
  unsigned_one.hash = "0";
  texts.push_back(text_of_record(unsigned_one));
  Snap torn = claim(next());
  torn.fold.resize(torn.fold.size() / 2);
  torn.hash = snapshot_hash(torn.fold);
  texts.push_back(text_of_record(torn));
  return texts;
}

/// Counts by reason, for the reasons of invalid SNAPs.
std::map<Ignored, std::uint64_t> counted(const Fold& fold) {
  std::map<Ignored, std::uint64_t> counts;
  for (const auto reason : {Ignored::foreign, Ignored::stale_session, Ignored::refused, Ignored::impossible})
    counts[reason] = fold.ignored.of(reason);
  return counts;
}

}  // namespace

TEST_CASE(
    "Control topic: its head is gone, a newcomer passes hostile SNAPs, begins at a right one and joins") {
  GroupInKafka site("rivulet.cut.control");
  for (const auto* id : {"a", "b"}) site.group.start(id, 2);
  REQUIRE(site.formed(1));
  site.put(std::vector<std::string>(900, "noise"));
  REQUIRE(site.run_until([&] { return site.fold("a").ignored.of(Ignored::unreadable) == 900; }));
  const std::int64_t cut = site.fold("a").next_offset;
  site.put(hostile_snaps(site.fold("a"), cut));
  site.put(std::vector<std::string>(200, "noise"));
  REQUIRE(site.run_until([&] { return site.fold("a").snapped_at > cut && site.fold("b").snapped_at > cut; }));
  const std::map<Ignored, std::uint64_t> all{
      {Ignored::foreign, 1}, {Ignored::stale_session, 1}, {Ignored::refused, 1}, {Ignored::impossible, 2}};
  CHECK(counted(site.fold("a")) == all);
  CHECK(site.fold("a").view.number == 1);

  must_do(delete_records(site.brokers, site.topic, 0, cut));
  REQUIRE(watermarks(site.brokers, site.topic, 0).value().first == cut);
  site.group.nodes.erase("b");
  site.group.start("b", 2);
  REQUIRE_MESSAGE(site.formed(2), site.group.error("b"));
  CHECK(site.fold("b").ignored.of(Ignored::unreadable) < 900);  // it has not seen the oldest records
  CHECK(counted(site.fold("b")) == all);
  REQUIRE(site.run_until([&] { return site.fold("a").next_offset == site.fold("b").next_offset; }));
  CHECK(site.fold("b").devices == site.fold("a").devices);
  CHECK(site.fold("b").view == site.fold("a").view);

  const auto end = watermarks(site.brokers, site.topic, 0).value().second;
  must_do(delete_records(site.brokers, site.topic, 0, end));
  site.group.start("b", 2);
  REQUIRE(site.run_until([&] { return site.group.error("b") != "none"; }));
  CHECK(site.group.error("b").starts_with("invalid_config: the control topic of job mnist begins at offset " +
                                          std::to_string(end)));
  CHECK(site.group.error("a") == "none");  // it has read everything
}

TEST_CASE("Control topic: a slow broker may take as long as it wants to hand one out, a silent one may not") {
  struct SlowLog final : WrappedLog {
    using WrappedLog::WrappedLog;
    Result<std::span<const LogEntry>> poll(std::size_t max) override {
      if (++polls % 2 == 1 || given == last) return std::span<const LogEntry>();
      ++given;
      return inner->poll(max);
    }
    int polls = 0;
    int given = 0;
    int last = 6;
  };
  MemoryLog whole;
  const auto writer = whole.open();
  for (int i = 0; i < 6; ++i) must_do(writer->append(bytes_of_text(text_of_record(Stop{"n", "h", 1}))));
  const auto read = [&](int last) {
    auto log = std::make_unique<SlowLog>(whole.open());
    log->last = last;
    runtime::ControlTopic topic("mnist", std::move(log), [] { usleep(100'000); });
    const auto status = topic.read_all(400ms);
    return std::pair(status, topic.fold().next_offset);
  };
  const auto [done, all] = read(6);
  CHECK(done);
  CHECK(all == 6);
  const auto [silent, some] = read(3);
  REQUIRE_FALSE(silent);
  CHECK(silent.error().message ==
        "topic \"rivulet.mnist.control\" could not be read to its end: no record for 0.4 s");
  CHECK(some == 3);
}

TEST_CASE("Control topic: what it takes to read one from its beginning") {
  const std::string brokers = shared_kafka().brokers();
  const auto records = static_cast<std::uint64_t>(repetitions(10'000, 100'000));
  const std::string topic = "rivulet.long.control";
  must_do(create_topic(brokers, topic, 1));
  std::vector<TestRecord> texts;
  FoldScript script;  // predicts the sessions: offsets here have no gaps
  const auto put = [&](const ControlRecord& record) { texts.push_back({.value = text_of_record(record)}); };
  for (const auto* id : {"a", "b"}) {
    script.hello(id);
    put(script.fold.devices.at(id).hello);
  }
  for (std::int64_t session : {0, 1}) put(Ready{session == 0 ? "a" : "b", session, 1, {}, "d", ""});
  put(Close{"a", 0, 1});
  const std::string digest(32, 'd');
  for (std::uint64_t i = 0; texts.size() < records; ++i)
    put(Saved{i % 2 == 0 ? "a" : "b", static_cast<std::int64_t>(i % 2), 1, {1, 1 + i / 2}, digest, digest});
  must_do(produce(brokers, topic, texts));

  const RealClock clock;
  const TimePoint start = clock.now();
  const auto world = kafka_log_world(brokers, topic);
  const auto log = world.open();
  LogReader reader("mnist");
  REQUIRE(wait_until(
      [&] {
        for (auto read = log->poll(256); read && !read.value().empty(); read = log->poll(256))
          for (const auto& entry : read.value()) reader.take(entry);
        return log->caught_up();
      },
      60s));
  report_figure("control.records", static_cast<double>(records), "records");
  report_figure("control.read", to_seconds(clock.now() - start), "s");
  CHECK(reader.fold().next_offset == static_cast<std::int64_t>(records));
  CHECK(reader.fold().committed.stamp.step > records / 2 - 10);
  CHECK(reader.fold().ignored.total() == 0);
}
