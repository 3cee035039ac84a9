#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <set>

#include "runtime/status/health/health_watch.h"
#include "runtime/status/node_status.h"
#include "tests/support/counting_metrics.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace std::chrono_literals;
using rivulet::testing::contains;

namespace {

struct HealthLines final : Logger {
  void write(Level level, std::string_view message, const Fields&) override {
    all.push_back((level == Level::error  ? "error: "
                   : level == Level::warn ? "warn: "
                                          : "info: ") +
                  std::string(message));
  }
  std::vector<std::string> all;
};

/// A device for health checks; initially it is in a group, reads one partition and trains.
struct Patient {
  explicit Patient(HealthSetup setup = {.steps_in_time = true, .batch_least = 1})
      : watch(setup, status, metrics, log) {
    status.state = NodeState::training;
    status.world = 2;
    show("reading", 0, "");
    wait(1s);
  }
  void show(const std::string& state, std::int64_t next, const std::string& reason) {
    status.set_partitions({{"t", 3, state, next, 0, next, 0, reason}});
  }
  void drop(DropReason reason, std::uint64_t rows) { status.rows_dropped[reason] += rows; }
  /// It works: good rows arrive and are trained.
  void train(std::uint64_t rows = 10) {
    status.records_consumed += rows;
    status.rows_consumed += rows;
    status.rows_trained += rows;
    status.steps = status.steps + 1;
  }
  void wait(Duration time, const std::function<void()>& each_second = [] {}) {
    for (const TimePoint end = now + time; now < end;) {
      now += 1s;
      each_second();
      watch.look(now);
    }
  }
  [[nodiscard]] std::string holding() const {
    std::string names;
    for (const auto& finding : status.health().findings)
      names += (names.empty() ? "" : " ") + std::string(finding.condition);
    return names;
  }
  [[nodiscard]] bool ready() const { return status.health().ready(); }
  [[nodiscard]] std::string why() const { return status.health().why_not(); }
  double metric(const std::string& name) { return metrics[name]; }

  NodeStatus status;
  testing::CountingMetrics metrics;
  HealthLines log;
  HealthWatch watch;
  TimePoint now{1h};
};

}  // namespace

TEST_CASE("Health: nobody is ready before somebody has looked") {
  const NodeStatus status;
  CHECK_FALSE(status.health().ready());
  CHECK(status.health().why_not() == "starting");
}

TEST_CASE("Health: a device that trains is ready, for ever, and says nothing") {
  Patient it;
  it.wait(10min, [&] { it.train(); });
  CHECK(it.ready());
  CHECK(it.holding().empty());
  CHECK(it.why().empty());
  CHECK(it.metric("ready") == 1);
  CHECK(it.log.all.empty());
}

TEST_CASE("Health: each condition has a name of its own, and a series that says whether it holds") {
  Patient it;
  std::set<std::string_view> names;
  for (const Condition& condition : conditions()) {
    names.insert(condition.name);
    const auto series =
        "health_condition/" + std::string(condition.name) + "/" + std::string(name_of(condition.grade));
    CAPTURE(series);
    CHECK(it.metrics.has(series));
    CHECK(it.metric(series) == 0);
  }
  CHECK(names.size() == conditions().size());
  it.status.set_topics({{.name = "t", .gone = true}});
  it.wait(1s);
  CHECK(it.metric("health_condition/topic_gone/useless") == 1);
  CHECK(it.metric("ready") == 0);
  CHECK(it.log.all == std::vector<std::string>{
                          "error: topic \"t\" is gone: it was deleted, or this user has lost access to it"});
  it.status.set_topics({{.name = "t", .partitions = 4}});
  it.wait(1s);
  CHECK(it.metric("health_condition/topic_gone/useless") == 0);
  CHECK(it.metric("ready") == 1);
  CHECK(it.log.all.size() == 2);
}

TEST_CASE("Health: while the group forms a device is not ready, and repeats whom it waits for") {
  Patient it;
  it.status.world = 0;
  it.status.state = NodeState::forming;
  it.status.set_phrase("forming: waiting for c");
  it.wait(1s);
  CHECK(it.why() == "forming: waiting for c");
  CHECK(it.holding() == "forming");
  it.status.set_phrase("");
  it.wait(1s);
  CHECK(it.why() == "forming");
}

TEST_CASE(
    "Health: joining, cooling down and paused are conditions of their own; in a view none of them holds") {
  Patient it;
  it.status.world = 0;
  const auto says = [&](NodeState state, const char* phrase) {
    it.status.state = state;
    it.status.set_phrase(phrase);
    it.wait(1s);
    CHECK(it.why() == (*phrase == 0 ? std::string(name_of(state)) : phrase));
    return it.holding();
  };
  CHECK(says(NodeState::joining, "joining: waiting for a place") == "joining");
  CHECK(says(NodeState::cooling_down, "cooling down: waiting for 12 s to pass") == "cooling_down");
  CHECK(says(NodeState::cooling_down, "") == "cooling_down");
  CHECK(says(NodeState::paused, "paused: waiting for c") == "paused");
  CHECK(says(NodeState::connecting, "connecting to a, b") == "forming");
  for (const char* name : {"forming", "joining", "cooling_down", "paused"})
    CHECK_MESSAGE(is_phrase_of_state(name), name);
  CHECK_FALSE(is_phrase_of_state("not_announced"));
  CHECK_FALSE(is_phrase_of_state("some condition of a later release"));
  it.status.world = 2;
  it.status.state = NodeState::training;
  it.wait(1s);
  CHECK(it.ready());
}

TEST_CASE("Health: brokers that cannot be reached, and states that nobody hears of, are in their own words") {
  Patient it;
  it.status.set_source_trouble("no broker of k:1 can be reached (refused)");
  it.status.set_control_trouble("saved states do not reach the control topic");
  it.wait(1s);
  CHECK(it.why() == "no broker of k:1 can be reached (refused); saved states do not reach the control topic");
}

TEST_CASE("Health: a device all of whose rows are refused is not ready within half a minute") {
  Patient it;
  it.wait(29s, [&] { it.drop(DropReason::malformed, 20); });
  CHECK(it.ready());
  it.wait(3s, [&] { it.drop(DropReason::bad_label, 1); });
  CHECK(it.holding() == "rows_refused");
  CHECK(it.why() ==
        "the last 583 rows were rejected, no row was valid for 31 s; most frequent reason: malformed");
  it.train();
  it.wait(1s);
  CHECK(it.ready());
}

TEST_CASE("Health: rows that go bad after a good start are found as fast, also where they are few") {
  Patient it;
  it.wait(1min, [&] { it.train(); });
  it.wait(31s, [&] { it.drop(DropReason::missing_field, 1); });
  CHECK(it.holding() == "rows_refused");
  it.train();
  int second = 0;
  it.wait(61s, [&] {
    if (second++ % 20 == 0) it.drop(DropReason::missing_field, 1);
  });
  CHECK(it.holding() == "rows_refused");
}

TEST_CASE("Health: a few bad rows among good ones, or the last ones of a stream that pauses, are no reason") {
  Patient it;
  it.wait(5min, [&] {
    it.train(1);
    it.drop(DropReason::malformed, 99);
  });
  CHECK(it.ready());
  it.drop(DropReason::malformed, 3);
  it.wait(2min);
  CHECK(it.ready());
}

TEST_CASE("Health: rows of another kind and context are no bad ones, and do not hide bad ones") {
  Patient it;
  it.wait(2min, [&] {
    it.status.records_consumed += 20;
    it.drop(DropReason::filtered, 10);
    it.drop(DropReason::context, 10);
  });
  CHECK(it.ready());
  it.wait(35s, [&] {
    it.status.records_consumed += 21;
    it.drop(DropReason::filtered, 10);
    it.drop(DropReason::context, 10);
    it.drop(DropReason::malformed, 1);
  });
  CHECK(it.holding() == "rows_refused");
  CHECK(contains(it.why(), "most frequent reason: malformed"));
}

TEST_CASE("Health: of a stream that never had a good row one bad row is enough") {
  Patient it;
  it.status.records_consumed += 1;
  it.drop(DropReason::wrong_type, 1);
  it.wait(32s);
  CHECK(it.why() ==
        "the last 1 row was rejected, no row was valid for 31 s; most frequent reason: wrong_type");
}

TEST_CASE("Health: rows that wait for the group are good ones") {
  Patient it;
  it.status.world = 0;
  it.status.set_phrase("forming: waiting for c");
  it.wait(2min, [&] {
    it.status.records_consumed += 10;
    it.status.rows_consumed += 9;
    it.status.rows_waiting = it.status.rows_waiting + 9;
    it.drop(DropReason::malformed, 1);
  });
  CHECK(it.holding() == "forming");
}

TEST_CASE("Health: records that hold no row are no rows") {
  Patient it;
  it.wait(35s, [&] { it.status.records_consumed += 5; });
  CHECK(it.why() == "no rows in the last 175 records, for 34 s");
}

TEST_CASE("Health: a model whose batches are never finite is not ready") {
  Patient it;
  it.wait(1min, [&] { it.train(); });
  it.wait(31s, [&] {
    it.status.records_consumed += 8;
    it.status.rows_consumed += 8;
    it.drop(DropReason::nonfinite_batch, 8);
  });
  CHECK(it.holding() == "batches_lost");
  CHECK(contains(it.why(), "248 rows were dropped: the model has diverged"));
}

TEST_CASE("Health: a loss that is not finite is found at once") {
  Patient it;
  it.status.loss = std::numeric_limits<double>::quiet_NaN();  // nothing measured yet
  it.wait(1min, [&] { it.train(); });
  CHECK(it.ready());
  it.status.loss = std::numeric_limits<double>::infinity();
  it.wait(1s, [&] { it.train(); });
  CHECK(it.why() == "the loss is not finite: the model has diverged");
}

TEST_CASE("Health: a loss far above that of guessing is not ready, unless it comes down by itself") {
  Patient it;
  it.status.guess_loss = 2.3;
  it.status.own_loss = 0.2;
  it.wait(1min, [&] { it.train(); });
  it.status.own_loss = 37;
  it.wait(25s, [&] { it.train(); });
  CHECK(it.ready());
  it.wait(10s, [&] { it.train(); });
  CHECK(it.why() ==
        "the loss is 37, far above the 2.3 of a constant prediction, and has not halved for 34 s: the model "
        "has diverged");
  it.status.own_loss = 22;
  it.wait(1s);
  CHECK(it.ready());
  double loss = 1e6;
  it.wait(200s, [&] {
    it.train();
    it.status.own_loss = loss *= 0.96;  // halves in 17 s
    CHECK(it.ready());
  });
}

TEST_CASE("Health: where guessing is not known, or always right, no loss is too large") {
  Patient it;
  it.status.own_loss = 1e9;
  it.wait(2min, [&] { it.train(); });
  it.status.guess_loss = 0;
  it.wait(2min, [&] { it.train(); });
  CHECK(it.ready());
}

TEST_CASE("Health: a partition that is stopped is named with the reason") {
  Patient it;
  it.show("stopped", 7, "offsets 7 to 90 were deleted before they were read");
  it.wait(1s, [&] { it.train(); });
  CHECK(it.why() == "t:3 is not read: offsets 7 to 90 were deleted before they were read");
  it.show("reading", 90, "");
  it.wait(1s, [&] { it.train(); });
  CHECK(it.ready());
}

TEST_CASE("Health: a partition that cannot be opened is waited for, half a minute") {
  Patient it;
  it.show("opening", -1, "");
  it.wait(29s, [&] { it.train(); });
  CHECK(it.ready());
  it.wait(3s, [&] { it.train(); });
  CHECK(it.why() == "t:3 is not read: no broker has reported its start offset");
}

TEST_CASE("Health: an open transaction may hold records back for a minute") {
  Patient it;
  const std::string why = "an open transaction blocks 4 records from offset 9 on";
  it.show("reading", 9, why);
  it.wait(59s, [&] { it.train(); });
  CHECK(it.ready());
  it.wait(3s, [&] {
    it.train();
    it.show("reading", 9, "an open transaction blocks 5 records from offset 9 on");
  });
  CHECK(it.holding() == "partition_unread");
}

TEST_CASE(
    "Health: what the broker has of the topic counts, too: too few partitions, or one without a leader") {
  Patient it;
  it.status.set_topics({{.name = "t", .partitions = 3}});
  it.wait(1s);
  CHECK(it.why() == "t:3 is not read: the topic has 3 partitions now");
  it.status.set_topics({{.name = "t", .partitions = 4, .leaderless = {3}}});
  it.wait(1s);
  CHECK(it.why() == "t:3 is not read: the partition has no leader");
  it.status.set_topics({{.name = "t", .partitions = 4, .leaderless = {2}}});
  it.wait(1s);
  CHECK(it.ready());
  it.status.set_topics({{.name = "rivulet.j.control", .control = true, .gone = true, .partitions = 1}});
  it.wait(1s);
  CHECK(contains(it.why(), "control topic \"rivulet.j.control\" is gone"));
}

TEST_CASE("Health: of many partitions that are not read some are named") {
  Patient it;
  std::vector<PartitionStatus> all;
  for (int i = 0; i < 9; ++i) all.push_back({"t", i, "stopped", 1, 0, 1, 0, "gone"});
  it.status.set_partitions(all);
  it.wait(1s);
  CHECK(it.why() == "t:0 is not read: gone; t:1 is not read: gone; t:2 is not read: gone; and 6 more");
}

TEST_CASE("Health: rows that wait while the group applies nothing are a reason after two minutes") {
  Patient it;
  it.wait(1min, [&] { it.train(); });
  it.status.rows_waiting = 50;
  it.wait(118s);
  CHECK(it.ready());
  it.wait(5s);
  CHECK(it.why() == "rows are waiting, but the group has applied no round for 2 min");
  it.status.world = 0;
  it.wait(1s);
  CHECK(it.holding() == "forming");
  it.status.world = 2;
  it.status.rows_waiting = 0;
  it.status.own_rows = 50;  // local steps that are not synchronized
  it.wait(1s);
  CHECK(it.holding() == "no_synchronization");
  it.status.steps = it.status.steps + 1;
  it.wait(1s);
  CHECK(it.ready());
}

TEST_CASE("Health: nothing stalls where nothing waits, in a dry run, or before an agreement is due") {
  Patient few({.steps_in_time = true, .batch_least = 8});
  few.status.rows_waiting = 7;
  few.wait(4min);
  CHECK(few.ready());
  Patient dry({.steps_in_time = false, .batch_least = 1});
  dry.status.rows_waiting = 50;
  dry.wait(4min);
  CHECK(dry.ready());
  Patient slow;
  slow.status.sync_due_s = 100;
  slow.status.rows_waiting = 50;
  slow.wait(190s);
  CHECK(slow.ready());
  slow.wait(15s);
  CHECK(slow.holding() == "no_synchronization");
}

TEST_CASE("Health: a disk that takes nothing, and a group that commits nothing, impair a device") {
  Patient it;
  it.status.unsaved_since_ns = it.now.time_since_epoch().count();
  it.wait(55s, [&] { it.train(); });
  CHECK(it.holding().empty());
  it.wait(10s, [&] { it.train(); });
  CHECK(it.holding() == "not_saved");
  CHECK(it.ready());
  CHECK(it.metric("health_condition/not_saved/impaired") == 1);
  it.status.unsaved_since_ns = 0;
  it.status.uncommitted_since_ns = it.now.time_since_epoch().count();
  it.wait(170s, [&] { it.train(); });
  CHECK(it.holding().empty());
  it.wait(15s, [&] { it.train(); });
  CHECK(it.holding() == "not_saved");
}

TEST_CASE("Health: a stream that falls silent impairs a device, measured by how it was") {
  Patient never;
  never.wait(298s);
  CHECK(never.holding().empty());
  never.wait(5s);
  CHECK(never.status.health().findings.at(0).phrase == "no record since the start, 5 min ago");
  CHECK(never.ready());

  Patient slow;
  int second = 0;
  slow.wait(20min, [&] {
    if (second++ % 120 == 0) slow.train();
  });
  slow.wait(7min);
  CHECK(slow.holding().empty());
  slow.wait(3min);
  CHECK(slow.holding() == "stream_silent");
  slow.train();
  slow.wait(1s);
  CHECK(slow.holding().empty());

  Patient full;  // it requests nothing
  full.wait(1min, [&] { full.train(); });
  full.status.rows_waiting = 100;
  full.wait(20min, [&] { full.status.steps = full.status.steps + 1; });
  CHECK(full.holding().empty());
}

TEST_CASE("Health: partitions that nobody claims are those trained before, and those of the topic") {
  Patient it;
  it.status.set_topics({{.name = "t", .partitions = 5}, {.name = "c", .control = true, .partitions = 1}});
  it.wait(1s);
  CHECK(it.status.unclaimed().empty());  // claims are still unknown
  it.status.set_claims({.known = true, .claimed = {"t:3", "t:0"}, .trained = {"u:7", "t:3", "t:4"}});
  it.wait(1s);
  CHECK(it.status.unclaimed() == std::vector<std::string>{"u:7", "t:4", "t:1", "t:2"});
  CHECK(it.metric("unclaimed_partitions") == 4);
  CHECK(it.ready());
  CHECK(
      it.status.health().findings.at(0).phrase ==
      "no device of the group claims u:7, t:4, t:1, and 1 more: assign them to a device (source.partitions)");
  it.status.set_claims({.known = true, .claimed = {"t:3", "t:0", "t:1", "t:2", "t:4"}, .trained = {}});
  it.wait(1s);
  CHECK(it.status.unclaimed().empty());
  CHECK(it.holding().empty());
}
