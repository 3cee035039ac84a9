// Arbitrary records in the control topic are ignored and counted by reason; the fold remains a function of
// the valid records.
#include <doctest/doctest.h>

#include <map>

#include "core/rng.h"
#include "sync/membership/snapshot.h"
#include "tests/support/fold_script.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::sync::membership;
using Script = rivulet::testing::FoldScript;
using rivulet::testing::bytes_of_text;

namespace {

using Bytes = std::vector<std::byte>;

Bytes own(const ControlRecord& record) {
  return encode(record, "mnist").value();
}

/// The fold without counts of ignored records and without its position in the log.
Fold heart_of(Fold fold) {
  fold.ignored = {};
  fold.next_offset = 0;
  return fold;
}

struct HostileCase {
  const char* what;
  Bytes bytes;
  Ignored reason;
};

/// For a group of a and b in view 1 of run 2 that has saved (3.9): sessions as given.
std::vector<HostileCase> hostile_cases(std::map<std::string, std::int64_t> of, std::int64_t old_a,
                                       const Hello& old_hello) {
  const auto a = of["a"];
  const auto b = of["b"];
  const std::string json = R"({"version":1,"job":"mnist","type":)";
  Hello twin{"a", "a-nonce", "elsewhere", 1, 2, "h", {}, {}};
  Hello greedy = twin;
  greedy.nonce = "greedy";
  greedy.device = "c";
  greedy.new_run = true;
  return {
      {"nothing", {}, Ignored::unreadable},
      {"noise", bytes_of_text("\xff\x00\x01{"), Ignored::unreadable},
      {"a list", bytes_of_text("[1,2,3]"), Ignored::unreadable},
      {"deep brackets", bytes_of_text(std::string(60'000, '[')), Ignored::unreadable},
      {"a record without an end", bytes_of_text(json + R"("stop","nonce":"x","host":"h","pid":1)"),
       Ignored::unreadable},
      {"a field too few", bytes_of_text(json + R"("stop","host":"h","pid":1})"), Ignored::unreadable},
      {"a name that is none", bytes_of_text(json + R"("leave","device":"../a","session":1,"reason":""})"),
       Ignored::unreadable},
      {"a wish that is not a yes or no",
       bytes_of_text(json + R"("hello","device":"x","nonce":"n","host":"h","pid":1,)"
                            R"("devices":2,"config_hash":"h","config":{},"partitions":[],)"
                            R"("new_run":"please"})"),
       Ignored::unreadable},
      {"more than a record may have", Bytes(record_max_bytes + 1, std::byte{' '}), Ignored::oversized},
      {"a megabyte", Bytes(1 << 20, std::byte{'{'}), Ignored::oversized},
      {"a record of a later version", bytes_of_text(R"({"version":9,"job":"mnist","type":"stop"})"),
       Ignored::unknown},
      {"a type that nobody knows", bytes_of_text(json + R"("rollback","device":"a"})"), Ignored::unknown},
      {"a STOP of another job", encode(Stop{"n", "h", 1}, "other").value(), Ignored::foreign},
      {"the HELLO of a again", own(twin), Ignored::replayed},
      {"the HELLO of a's last session again", own(old_hello), Ignored::replayed},
      {"a READY of a's last session", own(Ready{"a", old_a, 4, {}, "", ""}), Ignored::stale_session},
      {"a READY of nobody", own(Ready{"x", 1, 4, {}, "", ""}), Ignored::stale_session},
      {"a LEAVE of a's session before the last", own(Leave{"a", 1, ""}), Ignored::stale_session},
      {"a LEAVE of nobody", own(Leave{"x", a, ""}), Ignored::stale_session},
      {"a READY for the view that runs", own(Ready{"a", a, 3, {}, "", ""}), Ignored::wrong_view},
      {"a READY for a view far away", own(Ready{"a", a, 99, {}, "", ""}), Ignored::wrong_view},
      {"a CLOSE of a view far away", own(Close{"a", a, 99}), Ignored::wrong_view},
      {"an address for another view", own(Addr{"a", a, 1, "k", {}}), Ignored::wrong_view},
      {"a READY with a state of a view to come", own(Ready{"a", a, 4, {4, 1}, "d", ""}), Ignored::impossible},
      {"a READY with a state of the run before", own(Ready{"a", a, 4, {2, 900}, "d", ""}),
       Ignored::impossible},
      {"a SAVED of a view to come", own(Saved{"a", a, 4, {4, 20}, "d", "f"}), Ignored::wrong_view},
      {"a SAVED of a state of an older view", own(Saved{"a", a, 3, {2, 20}, "d", "f"}), Ignored::wrong_view},
      {"a SAVED older than what is saved", own(Saved{"b", b, 3, {3, 8}, "d", "f"}), Ignored::replayed},
      {"a CLOSE without any READY", own(Close{"a", a, 4}), Ignored::refused},
      {"a new run over a running one", own(greedy), Ignored::refused},
      {"a SNAP of nobody", own(Snap{"x", 1, 0, "h", "{}"}), Ignored::stale_session},
      {"a SNAP of another place", own(Snap{"a", a, 1, "h", "{}"}), Ignored::refused},
  };
}

struct HostileGroup {
  Script s;
  std::map<std::string, std::int64_t> of;
  std::int64_t old_a = -1;
  Hello old_hello;
  HostileGroup() {
    s.form({"a", "b"});
    s.form({"a", "b"});
    s.stop();
    old_a = s.hello("a", 2, "h", true);
    old_hello = s.fold.devices.at("a").hello;
    Hello hello = old_hello;
    hello.nonce = "a-nonce";
    of["a"] = s.put(hello);
    of["b"] = s.hello("b", 2, "h", true);
    for (const auto* id : {"a", "b"}) s.ready(id, of[id], 3);
    s.close("b", of["b"], 3);
    for (const auto* id : {"a", "b"}) s.saved(id, of[id], 3, {3, 9});
  }
  void put(const Bytes& bytes) {
    apply(s.fold, LogEntry{s.next, s.time_ms, bytes}, "mnist");
    s.next += 3;
  }
};

}  // namespace

TEST_CASE("Hostile records: each is ignored, counted under its reason, and changes nothing else") {
  HostileGroup group;
  REQUIRE(group.s.fold.run.number == 2);
  REQUIRE(group.s.fold.view.number == 3);
  REQUIRE(group.s.fold.committed.stamp == Stamp{3, 9});
  for (const auto& hostile : hostile_cases(group.of, group.old_a, group.old_hello)) {
    CAPTURE(hostile.what);
    const Fold before = group.s.fold;
    group.put(hostile.bytes);
    CHECK((heart_of(group.s.fold) == heart_of(before)));
    CHECK(group.s.fold.ignored.total() == before.ignored.total() + 1);
    CHECK(group.s.fold.ignored.of(hostile.reason) == before.ignored.of(hostile.reason) + 1);
  }
  const auto before = group.s.fold.ignored.of(Ignored::replayed);
  apply(group.s.fold, 0, Stop{"n", "h", 1});  // at an offset that has been read
  CHECK(group.s.fold.ignored.of(Ignored::replayed) == before + 1);
  CHECK(group.s.fold.stopped_at < group.of["a"]);
}

TEST_CASE("Hostile records: every reason has a name of its own") {
  std::map<std::string_view, int> names;
  for (std::size_t i = 0; i < ignored_reasons; ++i) ++names[name_of(static_cast<Ignored>(i))];
  CHECK(names.size() == ignored_reasons);
  CHECK_FALSE(names.contains("other"));
}

namespace {

constexpr std::int64_t stride = 5;

/// Records of a group of three in one random run, with hostile and late ones among them.
std::vector<Bytes> random_log(Rng& rng) {
  std::vector<Bytes> log;
  Script s;
  const std::vector<std::string> ids{"a", "b", "c"};
  const auto put = [&](const ControlRecord& record) {
    log.push_back(own(record));
    apply(s.fold, LogEntry{(static_cast<std::int64_t>(log.size()) - 1) * stride, 0, log.back()}, "mnist");
  };
  for (int step = 0; step < 300; ++step) {
    const std::string& id = ids[rng.below(3)];
    const auto known = s.fold.devices.find(id);
    const std::int64_t session =
        known == s.fold.devices.end() || rng.below(12) == 0 ? 0 : known->second.session;
    const std::uint64_t view = s.fold.view.number + (rng.below(10) == 0 ? rng.below(3) : 1);
    const Stamp stamp{s.fold.view.number, rng.below(50)};
    Hello hello{id, id + std::to_string(step), "h", 1, 3, "h", {}, {}};
    hello.new_run = rng.below(3) == 0;
    switch (rng.below(40)) {
      case 0: put(hello); break;
      case 1: put(Leave{id, session, "r"}); break;
      case 2: rng.below(3) == 0 ? put(Stop{"n" + std::to_string(step), "h", 1}) : put(hello); break;
      case 3: put(Saved{id, session, s.fold.view.number, stamp, "d", "f"}); break;
      case 4: put(Addr{id, session, s.fold.view.token, "k", {}}); break;
      default:
        if (known == s.fold.devices.end() || !is_open(s.fold, known->second)) {
          put(hello);
        } else if (rng.below(4) == 0) {
          put(Close{id, session, view});
        } else {
          put(Ready{id, session, view, rng.below(2) == 0 ? stamp : Stamp{}, "d", ""});
        }
    }
  }
  return log;
}

/// Records with their offsets from the broker: those of a clean log are `stride` apart.
using Storm = std::map<std::int64_t, Bytes>;

Fold fold_all(const Storm& storm) {
  Fold fold;
  for (const auto& [offset, bytes] : storm) apply(fold, LogEntry{offset, 0, bytes}, "mnist");
  return fold;
}

Bytes damaged(Bytes record, Rng& rng) {
  for (std::uint64_t flips = 1 + rng.below(3); flips > 0; --flips)
    record[rng.below(record.size())] ^= static_cast<std::byte>(1U << rng.below(8));
  if (rng.below(5) == 0) record.resize(rng.below(record.size()));
  return record;
}

/// The clean log, with arbitrary records between its own.
Storm storm_around(const std::vector<Bytes>& clean, Rng& rng) {
  Storm storm;
  for (std::size_t i = 0; i < clean.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i) * stride;
    storm[at] = clean[i];
    if (rng.below(8) == 0) storm[at + 1] = clean[rng.below(i + 1)];         // replayed
    if (rng.below(8) == 0) storm[at + 2] = clean[rng.below(clean.size())];  // too early
    if (rng.below(4) == 0) storm[at + 3] = damaged(clean[i], rng);
    if (rng.below(8) == 0) storm[at + 4] = encode(Stop{"n", "h", 1}, "other").value();
    if (i > 0 && rng.below(60) == 0) std::swap(storm[at], storm[at - stride]);  // out of order
  }
  return storm;
}

/// Invariants of every fold, for any log.
void check_sound(const Fold& fold, const Fold& before) {
  REQUIRE(fold.view.number >= before.view.number);
  REQUIRE(fold.view.token >= before.view.token);
  REQUIRE(fold.run.number >= before.run.number);
  REQUIRE(fold.stopped_at >= before.stopped_at);
  if (fold.run == before.run) REQUIRE(fold.committed.stamp >= before.committed.stamp);
  REQUIRE(fold.devices.size() <= devices_max);
  REQUIRE(fold.saved.size() <= saved_max);
  REQUIRE(fold.view.target.lineage <= fold.view.number);
  for (const auto& id : fold.view.members) REQUIRE(fold.devices.contains(id));
  for (const auto& [id, device] : fold.devices) {
    if (device.ready) REQUIRE(is_open(fold, device));
    REQUIRE(device.swaps.size() <= swaps_max);
    REQUIRE(device.session < fold.next_offset);
  }
}

}  // namespace

TEST_CASE("Hostile records: a seeded storm of damaged, replayed and reordered records keeps the fold sound") {
  std::uint64_t views = 0;
  std::uint64_t runs = 0;
  std::map<Ignored, std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng = Rng::derive(seed, "storm", 0);
    const Storm storm = storm_around(random_log(rng), rng);
    Fold fold;
    for (const auto& [offset, bytes] : storm) {
      const Fold before = fold;
      apply(fold, LogEntry{offset, 0, bytes}, "mnist");
      check_sound(fold, before);
      REQUIRE(fold.ignored.total() - before.ignored.total() <= 1);
    }
    REQUIRE((fold == fold_all(storm)));  // equal prefixes give equal folds
    REQUIRE(snapshot_of(fold) == snapshot_of(fold_all(storm)));
    views += fold.view.number;
    runs += fold.run.number;
    for (std::size_t r = 0; r < ignored_reasons; ++r)
      seen[static_cast<Ignored>(r)] += fold.ignored.of(static_cast<Ignored>(r));
  }
  CHECK(views > 60);
  CHECK(runs > 70);
  for (const auto reason :
       {Ignored::unreadable, Ignored::replayed, Ignored::stale_session, Ignored::wrong_view, Ignored::refused,
        Ignored::impossible, Ignored::foreign, Ignored::unknown})
    CHECK_MESSAGE(seen[reason] > 0, name_of(reason));
}

TEST_CASE("Hostile records: what is ignored might as well not be there") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng = Rng::derive(seed, "noise", 0);
    const auto clean = random_log(rng);
    Fold with;
    Fold without;
    for (std::size_t i = 0; i < clean.size(); ++i) {
      const auto offset = static_cast<std::int64_t>(i) * stride;
      const Fold before = with;
      apply(with, LogEntry{offset, 0, clean[i]}, "mnist");
      const bool counted = with.ignored == before.ignored;
      if (counted) apply(without, LogEntry{offset, 0, clean[i]}, "mnist");
      Bytes noise = clean[rng.below(clean.size())];
      noise.resize(rng.below(noise.size()));  // a truncated record is never valid
      apply(with, LogEntry{offset + 1, 0, noise}, "mnist");
    }
    REQUIRE((heart_of(with) == heart_of(without)));
  }
}
