#include <doctest/doctest.h>

#include "core/rng.h"
#include "tests/support/fold_script.h"

using namespace rivulet;
using namespace rivulet::sync::membership;

using Script = rivulet::testing::FoldScript;

TEST_CASE("Fold: HELLO, READY of everybody, CLOSE makes a view whose token is the offset of the CLOSE") {
  Script s;
  const auto b = s.hello("b");
  const auto a = s.hello("a");
  s.ready("b", b);
  CHECK(text_of(why_not_closable(s.fold, 2)) == "1 of 2 devices are ready");
  s.ready("a", a);
  CHECK_FALSE(why_not_closable(s.fold, 2));
  const auto token = s.close("b", b);
  CHECK(s.fold.view.number == 1);
  CHECK(s.fold.view.token == static_cast<std::uint64_t>(token));
  CHECK(s.fold.view.members == std::vector<std::string>{"a", "b"});
  CHECK(view_intact(s.fold));
  CHECK_FALSE(view_left(s.fold));
  CHECK(s.fold.ignored.total() == 0);
  s.ready("a", a, 2);
  CHECK(view_left(s.fold));
  s.hello("a");
  CHECK_FALSE(view_intact(s.fold));
}

TEST_CASE("Fold: the first valid CLOSE wins, a second one changes nothing") {
  Script s;
  const auto a = s.hello("a");
  const auto b = s.hello("b");
  s.ready("a", a);
  s.ready("b", b);
  const auto token = s.close("b", b);
  const auto again = s.close("a", a);
  CHECK(s.fold.view.number == 1);
  CHECK(s.fold.view.token == static_cast<std::uint64_t>(token));
  CHECK(s.fold.view.confirmed == again);
}

TEST_CASE("Fold: records that are void, stale or invalid are ignored and counted") {
  Script s;
  const auto old = s.hello("a");
  const auto a = s.hello("a");
  const auto b = s.hello("b");
  std::uint64_t expected = 0;
  const auto ignored = [&](const char* what, const ControlRecord& record) {
    const auto before = s.fold.devices;
    const auto view = s.fold.view;
    s.put(record);
    CHECK_MESSAGE(s.fold.ignored.total() == ++expected, what);
    CHECK_MESSAGE((s.fold.devices == before && s.fold.view == view), what);
  };
  ignored("READY of an older session", Ready{"a", old, 1, 0, 0, "", ""});
  ignored("READY of a session that never was", Ready{"a", 999, 1, 0, 0, "", ""});
  ignored("READY of an unknown device", Ready{"x", a, 1, 0, 0, "", ""});
  ignored("READY for the wrong view", Ready{"a", a, 2, 0, 0, "", ""});
  ignored("READY for view 0", Ready{"a", a, 0, 0, 0, "", ""});
  ignored("READY with a lineage above the closed view", Ready{"a", a, 1, 5, 0, "", ""});
  ignored("CLOSE of a device that is not ready", Close{"a", a, 1});
  s.ready("a", a);
  ignored("CLOSE with too few", Close{"a", a, 1});
  ignored("ADDR before any view", Addr{"a", a, 0, "k", {}});
  s.ready("b", b);
  ignored("CLOSE of an older session", Close{"a", old, 1});
  ignored("CLOSE of a later view", Close{"a", a, 2});
  const auto token = static_cast<std::uint64_t>(s.close("a", a));
  ignored("READY for the view that has closed", Ready{"b", b, 1, 0, 0, "", ""});
  ignored("ADDR of another token", Addr{"a", a, token + 1, "k", {}});
  ignored("ADDR of another session", Addr{"a", old, token, "k", {}});
  ignored("ADDR of a stranger", Addr{"x", a, token, "k", {}});
  Hello twin = s.fold.devices.at("a").hello;
  ignored("the same HELLO written twice", twin);
  twin.nonce = "another";
  apply(s.fold, 0, twin);  // an offset seen before
  CHECK(s.fold.ignored.total() == ++expected);
  CHECK(s.fold.devices.at("a").session == a);
}

TEST_CASE("Fold: a device that cools down asks nobody") {
  Script s;
  const auto of = [&] {
    std::map<std::string, std::int64_t> sessions;
    for (const auto* id : {"a", "b"}) sessions[id] = s.hello(id, {1, 2, 3});
    return sessions;
  }();
  for (const auto& [id, session] : of) s.ready(id, session);
  s.close("a", of.at("a"));
  REQUIRE(s.fold.view.members.size() == 2);
  s.time_ms = 5000;
  const auto b = s.hello("b", {1, 2, 3});
  CHECK(s.fold.asked.ms == 5000);
  s.ready("a", of.at("a"), 2);
  s.ready("b", b, 2);
  s.close("a", of.at("a"), 2);
  REQUIRE(s.fold.view.members.size() == 2);
  s.time_ms = 12'000;
  s.ready("a", of.at("a"), 3);
  s.time_ms = 15'000;
  s.hello("b", {1, 2, 3});  // replaced a second time within ten minutes
  CHECK(s.fold.asked.ms == 12'000);
  CHECK_FALSE(s.fold.asked.due);
  CHECK(is_live(s.fold, s.fold.devices.at("a")));
}

TEST_CASE("Fold: a READY counts only until a HELLO of anybody a second after the last") {
  Script s;
  const auto a = s.hello("a");
  const auto b = s.hello("b");
  s.ready("a", a);
  s.ready("b", b);
  s.time_ms = 999;
  s.hello("d", 2);
  CHECK(is_live(s.fold, s.fold.devices.at("a")));
  s.time_ms = 1000;
  const auto c = s.hello("c", 2);
  CHECK(is_ready(s.fold, s.fold.devices.at("a")));
  CHECK_FALSE(is_live(s.fold, s.fold.devices.at("a")));
  s.close("a", a);
  CHECK(s.fold.view.number == 0);
  s.ready("a", a);
  s.ready("c", c);  // b is dead and never sends READY again
  s.close("a", a);
  CHECK(s.fold.view.members == std::vector<std::string>{"a", "c"});
}

TEST_CASE("Fold: different configurations, a partition claimed twice or too many devices do not close") {
  Script s;
  const auto a = s.hello("a", 2);
  const auto b = s.hello("b", 2, "other");
  s.ready("a", a);
  s.ready("b", b);
  CHECK(text_of(why_not_closable(s.fold, 2)) == "'batch.tick' is 100ms on a and 50ms on b");
  s.close("a", a);
  CHECK(s.fold.view.number == 0);

  Script twice;
  Hello claims{"a", "n1", "h", 1, 2, "h", {}, {"t:0"}};
  const auto first = twice.put(claims);
  claims.device = "b";
  const auto second = twice.put(claims);
  twice.ready("a", first);
  twice.ready("b", second);
  CHECK(text_of(why_not_closable(twice.fold, 2)) ==
        "partition t:0 is claimed by a and by b; every device needs its own partitions (source.partitions)");
  twice.close("a", first);
  CHECK(twice.fold.view.number == 0);

  Script many;
  const auto x = many.hello("x");
  const auto y = many.hello("y");
  const auto z = many.hello("z");
  many.ready("x", x);
  many.ready("y", y);
  many.ready("z", z);
  CHECK(text_of(why_not_closable(many.fold, 2)) ==
        "3 devices try to join a group of job.devices = 2: x, y, z");
  many.close("x", x);
  CHECK(many.fold.view.number == 0);
}

TEST_CASE("Fold: addresses are those of the current view and bounded") {
  Script s;
  const auto a = s.hello("a", 1);
  s.ready("a", a);
  const auto token = static_cast<std::uint64_t>(s.close("a", a));
  for (int i = 0; i < 200; ++i) s.put(Addr{"a", a, token, "k" + std::to_string(i), {std::byte{1}}});
  CHECK(s.fold.addresses.size() == addresses_max_per_member);
  s.put(Addr{"a", a, token, "k0", {std::byte{2}}});
  CHECK(s.fold.addresses.at({token, "k0"}) == std::vector<std::byte>{std::byte{2}});
  s.ready("a", a, 2);
  s.close("a", a, 2);
  CHECK(s.fold.addresses.empty());
}

TEST_CASE("Fold: twenty thousand names do not fill it, and members and ready devices stay") {
  Script s;
  const auto a = s.hello("a", 1);
  s.ready("a", a);
  s.close("a", a);
  for (int i = 0; i < 20'000; ++i) s.hello("pod-" + std::to_string(i), 1);
  CHECK(s.fold.devices.size() == devices_max);
  CHECK(s.fold.devices.contains("a"));
  CHECK(s.fold.devices.contains("pod-19999"));
  CHECK_FALSE(s.fold.devices.contains("pod-0"));
}

TEST_CASE("Fold: random records keep one token per view, tokens rise, members are live sessions") {
  Rng rng(7);
  std::uint64_t views = 0;
  for (int run = 0; run < 200; ++run) {
    Script s;
    const std::vector<std::string> ids{"a", "b", "c", "d"};
    ClosedView last;
    for (int step = 0; step < 400; ++step) {
      const std::string& id = ids[rng.below(4)];
      const auto it = s.fold.devices.find(id);
      const auto session = it == s.fold.devices.end() || rng.below(8) == 0
                               ? static_cast<std::int64_t>(rng.below(30))
                               : it->second.session;
      const std::uint64_t view = s.fold.view.number + (rng.below(8) == 0 ? rng.below(3) : 1);
      const auto kind = rng.below(20);
      if (kind == 0) {
        s.hello(id, 3, rng.below(10) == 0 ? "other" : "h");
      } else if (kind < 12) {
        s.ready(id, session, view);
      } else {
        s.close(id, session, view);
      }
      if (s.fold.view.number != last.number) {
        REQUIRE(s.fold.view.number == last.number + 1);
        REQUIRE(s.fold.view.token > last.token);
        REQUIRE(s.fold.view.members.size() == 3);
        REQUIRE(view_intact(s.fold));
        ++views;
      } else {
        REQUIRE(s.fold.view.token == last.token);
      }
      last = s.fold.view;
    }
  }
  CHECK(views > 500);
}

TEST_CASE("Fold: a view starts from the best stamp among the READYs, and says who holds it") {
  Script s;
  const auto a = s.hello("a", 3);
  const auto b = s.hello("b", 3);
  const auto c = s.hello("c", 3);
  const auto form = [&](std::uint64_t view, Stamp of_a, Stamp of_b, Stamp of_c) {
    s.ready("a", a, view, of_a, "d" + text_of(of_a));
    s.ready("b", b, view, of_b, "d" + text_of(of_b));
    s.ready("c", c, view, of_c, "d" + text_of(of_c));
    s.close("a", a, view);
    REQUIRE(s.fold.view.number == view);
  };
  form(1, {}, {}, {});
  CHECK(s.fold.view.target == Stamp{0, 0});
  CHECK(s.fold.view.holders == std::vector<std::string>{"a", "b", "c"});
  form(2, {1, 7}, {1, 8}, {0, 0});  // one survivor has applied the last round, the other has not
  CHECK(s.fold.view.target == Stamp{1, 8});
  CHECK(s.fold.view.digest == "d1.8");
  CHECK(s.fold.view.holders == std::vector<std::string>{"b"});
  form(3, {2, 9}, {1, 20}, {2, 9});  // a later lineage wins over more steps
  CHECK(s.fold.view.target == Stamp{2, 9});
  CHECK(s.fold.view.holders == std::vector<std::string>{"a", "c"});
}

TEST_CASE("Fold: equal stamps with unequal digests cannot be; what most hold is taken then") {
  Script s;
  const auto a = s.hello("a", 3);
  const auto b = s.hello("b", 3);
  const auto c = s.hello("c", 3);
  s.ready("a", a, 1, {}, "flipped");
  s.ready("b", b, 1, {}, "right");
  s.ready("c", c, 1, {}, "right");
  s.close("c", c, 1);
  CHECK(s.fold.view.digest == "right");
  CHECK(s.fold.view.holders == std::vector<std::string>{"b", "c"});
}

TEST_CASE("Fold: a state is committed once enough members of the current view have saved it") {
  Script s;
  const auto a = s.hello("a", 3);
  const auto b = s.hello("b", 3);
  const auto c = s.hello("c", 3);
  const auto form = [&](std::uint64_t view, Stamp stamp) {
    s.ready("a", a, view, stamp);
    s.ready("b", b, view, stamp);
    s.ready("c", c, view, stamp);
    s.close("a", a, view);
    REQUIRE(s.fold.view.number == view);
  };
  form(1, {});
  s.saved("a", a, 1, {1, 500});
  CHECK(s.fold.committed.stamp == Stamp{});
  s.saved("a", a, 1, {1, 500});           // the same disk again
  s.saved("b", b, 1, {1, 500}, "other");  // another state
  s.saved("b", b, 1, {0, 500});           // of an ended view
  s.saved("b", b + 1, 1, {1, 500});       // of an unknown session
  CHECK(s.fold.committed.stamp == Stamp{});
  CHECK(s.fold.ignored.total() == 3);
  s.saved("a", a, 1, {1, 1000});  // the next one overtakes
  s.saved("c", c, 1, {1, 500});
  CHECK(s.fold.committed == Committed{{1, 500}, "d"});
  s.saved("b", b, 1, {1, 1000});
  CHECK(s.fold.committed == Committed{{1, 1000}, "d"});
  CHECK(s.fold.saved.empty());
  s.saved("a", a, 1, {1, 900});  // never backwards
  s.saved("b", b, 1, {1, 900});
  CHECK(s.fold.committed.stamp == Stamp{1, 1000});
  s.saved("a", a, 1, {1, 1500});
  form(2, {1, 1500});
  s.saved("b", b, 1, {1, 1500});  // too late: a state of an older view on half of the disks is not committed
  s.saved("b", b, 2, {1, 1500});
  CHECK(s.fold.committed.stamp == Stamp{1, 1000});
}

TEST_CASE("Fold: no view forms without the state that was committed") {
  Script s;
  auto a = s.hello("a");
  auto b = s.hello("b");
  s.ready("a", a);
  s.ready("b", b);
  s.close("a", a);
  s.saved("a", a, 1, {1, 40});
  s.saved("b", b, 1, {1, 40});
  CHECK(s.fold.committed.stamp == Stamp{1, 40});
  a = s.hello("a");  // both disks are lost
  b = s.hello("b");
  s.ready("a", a, 2);
  s.ready("b", b, 2);
  CHECK(text_of(why_not_closable(s.fold, 2)) ==
        "the group's saved state (1.40) is on none of a, b: start a device that has it in its "
        "checkpoint folder, restore an older one on every device (rivulet checkpoint restore), or start all "
        "with --new-run to start over");
  const auto ignored = s.fold.ignored.total();
  s.close("a", a, 2);
  CHECK(s.fold.ignored.total() == ignored + 1);
  CHECK(s.fold.view.number == 1);
  s.ready("b", b, 2, {1, 41});  // one disk has returned, and is ahead of the commit
  CHECK_FALSE(why_not_closable(s.fold, 2));
  s.close("a", a, 2);
  CHECK(s.fold.view.target == Stamp{1, 41});
}
