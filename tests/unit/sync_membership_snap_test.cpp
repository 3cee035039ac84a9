// SNAP: the fold of the log in one record.
#include <doctest/doctest.h>

#include "sync/membership/log_reader.h"
#include "sync/membership/snapshot.h"
#include "tests/support/fold_script.h"
#include "tests/support/membership_group.h"
#include "tests/support/wrapped_log.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::membership;
using namespace std::chrono_literals;
using Script = rivulet::testing::FoldScript;
using Group = rivulet::testing::MembershipGroup;

namespace {

/// A fold with a value in every field.
Script full_script() {
  Script s;
  s.form({"a", "b", "c"});
  s.stop();
  auto of = s.form({"a", "b", "c"}, true);
  s.time_ms = 5000;
  s.saved("a", of["a"], 2, {2, 40});
  s.saved("b", of["b"], 2, {2, 40});
  s.saved("c", of["c"], 2, {2, 50});
  const auto older = of["b"];
  of["b"] = s.hello("b", 3);
  s.leave("b", older, "superseded");
  s.ready("a", of["a"], 3, {2, 55}, "d55");
  s.leave("c", of["c"], "asked to end");
  return s;
}

Snap snap_of(const Script& s, const std::string& device) {
  Snap snap{device, s.fold.devices.at(device).session, s.fold.next_offset, "", snapshot_of(s.fold)};
  snap.hash = snapshot_hash(snap.fold);
  return snap;
}

Fold as_snapshot(Fold fold) {
  fold.ignored = {};
  fold.addresses.clear();
  return fold;
}

}  // namespace

TEST_CASE("Snap: a fold comes back as it was, without addresses and counts") {
  const Script s = full_script();
  const auto back = fold_of(snap_of(s, "a"));
  REQUIRE(back);
  CHECK((*back == as_snapshot(s.fold)));
  CHECK(back->devices.at("b").swaps == std::vector<std::int64_t>{5000});
  CHECK(back->committed.stamp == Stamp{2, 40});
  CHECK(back->saved.size() == 1);
}

TEST_CASE("Snap: a device that says another configuration under the same hash keeps it") {
  Script s;
  s.hello("a", 2);
  s.hello("b", 3);  // the hash is "h", too
  REQUIRE(s.fold.devices.at("a").hello.config != s.fold.devices.at("b").hello.config);
  const auto back = fold_of(snap_of(s, "a"));
  REQUIRE(back);
  CHECK((*back == as_snapshot(s.fold)));
}

TEST_CASE("Snap: a device that has folded the same takes note of it; one that is not the same is counted") {
  Script s = full_script();
  Snap snap = snap_of(s, "a");
  s.time_ms += 1000;  // the log takes it later
  const auto at = s.put(snap);
  CHECK(s.fold.snapped_at == at);
  CHECK(s.fold.time_ms == 6000);
  CHECK(s.fold.ignored.total() == 0);
  s.put(snap);  // it no longer represents the records before it
  CHECK(s.fold.ignored.of(Ignored::refused) == 1);
  snap = snap_of(s, "a");
  snap.fold.replace(snap.fold.find("\"number\":2"), 10, "\"number\":3");
  snap.hash = snapshot_hash(snap.fold);
  s.put(snap);
  CHECK(s.fold.ignored.of(Ignored::impossible) == 1);
  CHECK(s.fold.view.number == 2);
  CHECK(s.fold.snapped_at == at);
}

TEST_CASE("Snap: nothing but a whole and sound fold is read, whatever its hash says") {
  const Script s = full_script();
  const Snap good = snap_of(s, "a");
  const auto refused = [&](const std::string& from, const std::string& to) {
    Snap bad = good;
    const auto at = bad.fold.find(from);
    REQUIRE(at != std::string::npos);
    bad.fold.replace(at, from.size(), to);
    CHECK_FALSE_MESSAGE(fold_of(bad), to);  // the hash is wrong
    bad.hash = snapshot_hash(bad.fold);
    CHECK_FALSE_MESSAGE(fold_of(bad), to);
  };
  refused("{", "");
  refused("\"members\":[\"a\",", "\"members\":[\"z\",");
  refused("\"members\":[\"a\",", "\"members\":[");
  refused("\"run\":[", "\"run\":[[],");
  refused("\"next_offset\":", "\"next_offset\":-");
  refused("\"stopped_at\":", "\"stopped\":");
  refused("\"view\":{", "\"view\":{\"more\":1,");
  refused("\"pid\":100", "\"pid\":\"100\"");
  refused("\"contested\":-1", "\"contested\":-1e30");
  refused("\"swaps\":[5000", "\"swaps\":[9223372036854775807");
  refused("\"past_nonces\":[", "\"past_nonces\":[\"1\",\"2\",\"3\",\"4\",\"5\"");
  refused("\"members\":[\"a\",\"b\"", "\"members\":[\"b\",\"a\"");
  for (std::size_t length = 0; length < good.fold.size(); length += 7) {
    Snap torn = good;
    torn.fold.resize(length);
    torn.hash = snapshot_hash(torn.fold);
    REQUIRE_FALSE(fold_of(torn));
  }
}

TEST_CASE("Snap: a log whose beginning is gone is read from the first snapshot in it") {
  Script s = full_script();
  std::vector<std::pair<std::int64_t, std::vector<std::byte>>> log;
  const auto put = [&](const ControlRecord& record) {
    const auto offset = s.put(record);
    log.emplace_back(offset, encode(record, "mnist").value());
  };
  put(Stop{"n", "h", 1});
  put(snap_of(s, "a"));
  put(Hello{"c", "n9", "h", 1, 3, "h", s.fold.devices.at("a").hello.config, {}});
  const auto read_from = [&](std::size_t first) {
    LogReader reader("mnist");
    for (std::size_t i = first; i < log.size(); ++i) reader.take({log[i].first, 0, log[i].second});
    return reader;
  };
  const auto whole = read_from(0);
  CHECK(whole.understands());
  CHECK((as_snapshot(whole.fold()) == as_snapshot(s.fold)));
  const auto behind = read_from(2);
  CHECK_FALSE(behind.understands());
  CHECK(behind.first_offset() == log[2].first);
  CHECK(behind.fold().devices.empty());
  const Snap early = snap_of(s, "a");
  put(Stop{"n2", "h", 1});
  put(early);  // the STOP between its position and itself would be lost
  const auto torn = read_from(3);
  CHECK_FALSE(torn.understands());
  CHECK(torn.fold().stopped_at == -1);
}

TEST_CASE(
    "Snap: the first member says one every thousand records, and a newcomer behind it joins the group") {
  Group group;
  group.form({"a", "b"});
  const auto noise = group.log.open();
  for (int i = 0; i < snap_every; ++i) REQUIRE(noise->append(std::vector<std::byte>(3)));
  group.run(1s);
  const auto& fold = group.nodes.at("b").membership->fold();
  CHECK(fold.snapped_at >= snap_every);
  CHECK(fold.ignored.of(Ignored::impossible) == 0);
  const auto size = group.log.size();
  group.run(10s);
  CHECK(group.log.size() == size);  // one is enough

  /// As delivered by Kafka after retention has deleted the oldest records.
  struct Beheaded final : rivulet::testing::WrappedLog {
    Beheaded(std::unique_ptr<OrderedLog> whole, std::int64_t first)
        : WrappedLog(std::move(whole)), from(first) {}
    Result<std::span<const LogEntry>> poll(std::size_t max) override {
      for (;;) {
        auto read = inner->poll(max);
        if (!read || read.value().empty()) return read;
        kept.clear();
        for (const auto& entry : read.value())
          if (entry.offset >= from) kept.push_back(entry);
        if (!kept.empty()) return std::span<const LogEntry>(kept);
      }
    }
    const std::int64_t from;
    std::vector<LogEntry> kept;
  };
  group.nodes.erase("b");
  group.open = [&] { return std::make_unique<Beheaded>(group.log.open(), 500); };
  group.start("b", 2);
  group.run(2s);
  CHECK(group.error("b") == "none");
  CHECK(group.formed({"a", "b"}));
  CHECK(group.nodes.at("b").view->number == 2);
  CHECK(group.nodes.at("b").membership->fold().devices == group.nodes.at("a").membership->fold().devices);
}
