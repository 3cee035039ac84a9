// Groups that change their size: who is waited for, and for how long; who joins, and who is left out.
#include <doctest/doctest.h>

#include <algorithm>

#include "sync/membership/cool_down.h"
#include "tests/support/fold_script.h"
#include "tests/support/membership_group.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::membership;
using namespace std::chrono_literals;
using Group = rivulet::testing::MembershipGroup;
using Script = rivulet::testing::FoldScript;
using rivulet::testing::abcd;

namespace {

const std::vector<std::string> abc{"a", "b", "c"};
constexpr GroupSizes two_to_four{2, 4, 4};

struct Elastic : Group {
  explicit Elastic(const std::vector<std::string>& ids = abcd, const GroupSizes& sizes = two_to_four) {
    for (const auto& id : ids) start(id, sizes);
    run(ids.size() < sizes.wanted ? 6s : 300ms);
    REQUIRE(formed(ids));
  }
  /// Kills a device without a trace; the others notice.
  void lose(const std::string& id) {
    nodes.erase(id);
    for (auto& [name, node] : nodes) {
      node.view.reset();
      node.membership->leave_view("peer " + id + " is lost", {.lost = {id}});
    }
  }
  Membership& of(const std::string& id) { return *nodes.at(id).membership; }
  void leave(const std::string& id, const Departure& members) {
    nodes.at(id).view.reset();
    of(id).leave_view("left", members);
  }
};

/// a, b and c have formed a group of 1 to 4 and have committed 1.40.
struct Committing : Script {
  std::map<std::string, std::int64_t> of;
  explicit Committing(const GroupSizes& sizes = {1, 4, 4}) {
    for (const auto& id : abc) of[id] = hello(id, sizes);
    for (const auto& id : abc) ready(id, of[id]);
    close("a", of["a"]);
    REQUIRE(fold.view.number == 1);
    for (const auto* id : {"a", "b"}) saved(id, of[id], 1, {1, 40});
    REQUIRE(fold.committed.stamp == Stamp{1, 40});
  }
  void post_ready(const std::string& id, const Stamp& stamp, const Departure& members = {},
                  const std::string& digest = "d") {
    Ready ready{id, of[id], fold.view.number + 1, stamp, digest, ""};
    ready.lost = members.lost;
    ready.unreached = members.unreached;
    ready.accuses = members.accused;
    put(ready);
  }
};

}  // namespace

TEST_CASE("Elastic: a group starts at once with the usual number, and after 5 s with fewer") {
  Group g;
  g.start("a", {2, 3, 4});
  g.start("b", {2, 3, 4});
  g.run(4900ms);
  CHECK_FALSE(g.nodes.at("a").view);
  CHECK(g.nodes.at("a").membership->waiting_for() == std::vector<std::string>{"1 more device"});
  g.run(400ms);
  CHECK(g.formed({"a", "b"}));

  Group usual;
  for (const auto& id : abc) usual.start(id, {2, 3, 4});
  usual.run(300ms);
  CHECK(usual.formed(abc));

  Group alone;
  alone.start("a", {2, 3, 4});
  alone.run(60s);
  CHECK_FALSE(alone.nodes.at("a").view);
  CHECK(alone.error("a") == "none");
}

TEST_CASE("Elastic: a device that starts again and again keeps no group from starting") {
  Group g;
  for (const auto* id : {"a", "b"}) g.start(id, two_to_four);
  for (int i = 0; i < 3; ++i) {
    g.start("c", two_to_four);
    g.run(300ms);
    g.nodes.erase("c");
    g.run(1700ms);
  }
  CHECK(g.nodes.at("a").view);
}

TEST_CASE("Elastic: the survivors of a death go on without it in a quarter of a second") {
  Elastic g;
  g.lose("c");
  g.run(200ms);
  CHECK_FALSE(g.nodes.at("a").view);  // c may still say that it lives
  g.run(150ms);
  CHECK(g.formed({"a", "b", "d"}));
  CHECK(g.nodes.at("a").view->number == 2);
}

TEST_CASE("Elastic: one that was only thought lost is in the next view") {
  Elastic g;
  g.leave("a", {.lost = {"d"}});
  g.leave("d", {.lost = {"a"}});
  for (const auto* id : {"b", "c"}) g.leave(id, {.lost = {"a", "d"}});
  g.run(300ms);
  CHECK(g.formed(abcd));
}

TEST_CASE("Elastic: a member that is silent, but not missed, is waited for a second") {
  Elastic g;
  g.nodes.erase("c");
  for (const auto* id : {"a", "b", "d"}) g.leave(id, {});
  g.run(900ms);
  CHECK_FALSE(g.nodes.at("a").view);
  g.run(300ms);
  CHECK(g.formed({"a", "b", "d"}));
}

TEST_CASE("Elastic: a member that restarts in time is in the next view") {
  Elastic g;
  g.start("c", two_to_four);
  g.run(300ms);
  CHECK(g.formed(abcd));
  CHECK(g.nodes.at("a").view->number == 2);
}

TEST_CASE("Elastic: below min the group pauses, says for whom, and goes on when it has enough") {
  Elastic g;
  g.nodes.erase("d");
  g.nodes.erase("c");
  g.lose("b");
  g.run(60s);
  CHECK_FALSE(g.nodes.at("a").view);
  CHECK(g.error("a") == "none");
  CHECK(g.of("a").below_min());
  CHECK(g.of("a").waiting_for().back() == "to have at least 2 devices");
  g.start("c", two_to_four);
  g.run(6s);
  CHECK(g.formed({"a", "c"}));
  CHECK_FALSE(g.of("a").below_min());
}

TEST_CASE("Elastic: a device that leaves in order is not waited for") {
  Elastic g;
  g.of("b").leave_group("stop requested", Ends::device);
  g.nodes.erase("b");
  for (const auto* id : {"a", "c", "d"}) g.leave(id, {});
  g.run(100ms);
  CHECK(g.formed({"a", "c", "d"}));
}

TEST_CASE("Elastic: a newcomer waits for the group to take it in, and never forms one beside it") {
  Elastic g(abc);
  const auto token = g.nodes.at("a").view->token;
  g.start("d", {2, 4, 4});
  g.start("e", {2, 4, 4});
  g.run(70s);  // several times the patience with a dead view
  CHECK(g.nodes.at("a").view->token == token);
  CHECK(g.of("a").joiner_waits());
  CHECK(g.of("d").joining());
  CHECK(g.of("d").waiting_for() == std::vector<std::string>{"the end of a round of a, b, c"});
  CHECK(g.error("d") == "none");
  for (const auto& id : abc) g.leave(id, {});
  g.run(300ms);
  CHECK(g.formed(abcd));  // a group of at most four: the first newcomer
  CHECK_FALSE(g.of("a").joiner_waits());
  g.run(60s);
  CHECK(g.error("e") == "none");
  CHECK(g.of("e").joining());
  CHECK(g.of("e").waiting_for() ==
        std::vector<std::string>{"a place: the group has its 4 devices (job.devices): a, b, c, d"});
}

TEST_CASE("Elastic: who waits for a place gets it when a member dies, but not before that member") {
  Elastic g;
  g.start("e", two_to_four);
  g.run(1s);
  g.start("b", two_to_four);
  g.run(1s);
  CHECK(g.formed(abcd));
  g.lose("b");
  g.run(500ms);
  CHECK(g.formed({"a", "c", "d", "e"}));
}

TEST_CASE("Elastic: a newcomer copies a large state from a member, and only then is taken in") {
  Elastic g(abc);
  auto large = g.config("d", two_to_four);
  large.copied_bytes = 5'000'000;
  g.start(large);
  g.run(200ms);
  CHECK(g.of("d").joining());
  CHECK_FALSE(g.of("a").joiner_waits());
  const auto wanted = g.of("d").copy_to_take();
  REQUIRE(wanted);
  CHECK(wanted->receiver == "d");
  CHECK(wanted->link.members == std::vector<std::string>{wanted->donor, "d"});
  CHECK(wanted->link.rank == 1);
  const auto given = g.of(wanted->donor).copy_to_give();
  REQUIRE(given);
  CHECK(given->link.token == wanted->link.token);
  CHECK(given->link.rank == 0);
  for (const auto& id : abc)
    if (id != wanted->donor) CHECK_FALSE(g.of(id).copy_to_give());

  const std::vector<std::byte> address(3, std::byte{7});
  REQUIRE(g.of("d").set(wanted->link.token, "key", address));
  g.run(100ms);
  bool found = false;
  CHECK(g.of(wanted->donor).get(wanted->link.token, "key", found) == address);
  CHECK_FALSE(g.of(wanted->donor == "a" ? "b" : "a").set(wanted->link.token, "key", address));

  g.run(31s);  // it repeats its READY: still the same copy
  CHECK(g.of("d").copy_to_take()->link.token == wanted->link.token);

  // A member dies: the survivors do not wait for the copy, and the new view has another one.
  for (const auto& id : abc) g.of(id).announce_state({1, 7}, "seven", 70);
  for (const auto& id : abc) g.leave(id, {});
  g.run(400ms);
  REQUIRE(g.formed(abc));
  g.run(100ms);
  const auto again = g.of("d").copy_to_take();
  REQUIRE(again);
  CHECK(again->link.token != wanted->link.token);

  // It has the state: the others wait for its READY, up to a second.
  for (const auto& id : abc) g.of(id).announce_state({2, 9}, "nine", 90);
  for (const auto& id : abc) g.leave(id, id == again->donor ? Departure{.copied = {"d"}} : Departure{});
  g.run(600ms);
  CHECK_FALSE(g.nodes.at("a").view);
  g.of("d").announce_state({2, 9}, "nine", 90);
  g.run(100ms);
  REQUIRE(g.formed(abcd));
  CHECK(g.nodes.at("a").view->holders.size() == 4);
}

TEST_CASE("Elastic: a failed copy goes to the next member, and after three the view waits for the transfer") {
  Elastic g(abc);
  auto large = g.config("d", two_to_four);
  large.copied_bytes = 5'000'000;
  g.start(large);
  std::vector<std::string> donors;
  for (int i = 0; i < 3; ++i) {
    g.run(200ms);
    REQUIRE(g.of("d").copy_to_take());
    donors.push_back(g.of("d").copy_to_take()->donor);
    g.of("d").copy_failed();
    CHECK_FALSE(g.of("d").copy_to_take());  // not until the log shows it
  }
  std::ranges::sort(donors);
  CHECK(donors == abc);
  g.run(200ms);
  CHECK_FALSE(g.of("d").copy_to_take());
  CHECK(g.of("a").joiner_waits());
  for (const auto& id : abc) g.of(id).announce_state({1, 7}, "seven", 70);
  for (const auto& id : abc) g.leave(id, {});
  g.run(400ms);
  CHECK(g.formed(abcd));
}

TEST_CASE("Elastic: a newcomer without the state is in the view if the others are too few") {
  Committing s({3, 4, 4});
  Ready late{"c", s.of["c"] = s.hello("c", {3, 4, 4}), 2, {1, 30}, "d", ""};
  late.copy.bytes = 5'000'000;
  s.post_ready("a", {1, 41});
  s.post_ready("b", {1, 41});
  s.put(late);
  s.close("a", s.of["a"], 2);
  CHECK(s.fold.view.members == abc);
  CHECK(s.fold.view.holders == std::vector<std::string>{"a", "b"});
}

TEST_CASE("Elastic: a newcomer that died while it waited is not waited for") {
  Elastic g(abc);
  g.start("d", two_to_four);
  g.run(100ms);
  REQUIRE(g.of("a").joiner_waits());
  g.nodes.erase("d");
  for (const auto& id : abc) g.leave(id, {});
  g.run(400ms);
  CHECK(g.formed(abc));
  CHECK_FALSE(g.of("a").joiner_waits());
}

TEST_CASE("Elastic: a newcomer alone forms the group anew once nothing is heard of the last one") {
  Elastic g({"a"}, {1, 1, 4});
  g.start("b", {1, 1, 4});
  g.run(500ms);
  CHECK(g.of("b").joining());
  g.kill_all();
  g.start("c", {1, 1, 4});
  g.run(4s);
  CHECK_FALSE(g.nodes.at("c").view);
  g.run(2s);
  CHECK(g.formed({"c"}));
}

TEST_CASE("Elastic: a newcomer with another configuration or a member's partition ends alone") {
  Elastic g(abc);
  g.start("x", two_to_four, "50ms");
  auto greedy = g.config("y", two_to_four);
  greedy.hello.partitions = {"mnist:b"};
  g.start(greedy);
  g.run(5s);
  CHECK(g.error("x").starts_with("invalid_config: 'batch.tick' is 100ms on a and 50ms on x"));
  CHECK(g.error("y").starts_with("invalid_config: partition mnist:b is claimed by b and by y"));
  CHECK_FALSE(g.of("a").joiner_waits());
  CHECK(g.formed(abc));
}

TEST_CASE("Elastic: one that was frozen joins the group that went on without it, whatever it says of it") {
  Elastic g;
  auto frozen = std::move(g.nodes.at("d"));
  g.lose("d");
  g.run(500ms);
  REQUIRE(g.formed(abc));
  g.nodes.emplace("d", std::move(frozen));
  REQUIRE(g.of("d").poll(g.now));
  g.leave("d", {.lost = abc, .accused = abc});
  g.run(10s);
  CHECK(g.error("d") == "none");
  CHECK(g.of("d").joining());
  CHECK(g.formed(abc));
  for (const auto& id : abc) g.leave(id, {});
  g.run(300ms);
  CHECK(g.formed(abcd));
}

TEST_CASE("Elastic: a saved state that only absent devices have is waited for by name, and ends nobody") {
  Committing s;
  s.post_ready("c", {1, 30});
  s.close("c", s.of["c"], 2);
  CHECK(s.fold.view.number == 1);
  auto why = why_not_closable(s.fold, {1, 4, 4});
  CHECK(why.why == WhyNot::absent_state);
  CHECK(holders_of(why) == "a or b, with the group's saved state (1.40)");
  s.saved("c", s.of["c"], 1, {1, 40});  // of the view that is over, but it still counts
  CHECK(s.fold.committed_by == abc);
  s.of["a"] = s.hello("a", {1, 4, 4});
  for (const auto& id : abc) s.post_ready(id, {1, 30});
  why = why_not_closable(s.fold, {1, 4, 4});
  CHECK(why.why == WhyNot::lost_state);  // all of them are here, and no one has it
}

TEST_CASE(
    "Elastic: a view with fewer members than the quorum commits nothing, and neither does one after it") {
  Committing s;
  s.post_ready("a", {1, 41}, {.lost = {"b", "c"}});
  s.close("a", s.of["a"], 2);
  REQUIRE(s.fold.view.members == std::vector<std::string>{"a"});
  s.saved("a", s.of["a"], 2, {2, 50});
  CHECK(s.fold.committed.stamp == Stamp{1, 40});
}

TEST_CASE("Elastic: the accused is left out of one view, and its state is not the target") {
  Committing s;
  s.post_ready("a", {1, 41}, {.accused = {"c"}}, "right");
  s.post_ready("b", {1, 41}, {.accused = {"c"}}, "right");
  s.post_ready("c", {1, 41}, {}, "flipped");
  s.time_ms = 1000;
  s.close("c", s.of["c"], 2);
  CHECK(s.fold.view.number == 1);  // it has no right to
  s.close("a", s.of["a"], 2);
  CHECK(s.fold.view.members == std::vector<std::string>{"a", "b"});
  CHECK(s.fold.devices.at("c").expelled_ms == 1000);
  CHECK_FALSE(s.fold.devices.at("c").expelled_again);
  for (const auto& id : abc) s.post_ready(id, {id == "c" ? Stamp{1, 41} : Stamp{2, 43}});
  s.close("a", s.of["a"], 3);
  CHECK(s.fold.view.members == abc);
  CHECK(s.fold.view.holders == std::vector<std::string>{"a", "b"});
}

TEST_CASE("Elastic: one that is needed for the smallest view stays in it, and adopts its state") {
  Committing s({3, 3, 3});
  s.post_ready("a", {1, 41}, {.accused = {"c"}}, "right");
  s.post_ready("b", {1, 41}, {}, "right");
  s.post_ready("c", {1, 42}, {}, "flipped");  // even if it is ahead
  s.close("a", s.of["a"], 2);
  REQUIRE(s.fold.view.members == abc);
  CHECK(s.fold.view.target == Stamp{1, 41});
  CHECK(s.fold.view.holders == std::vector<std::string>{"a", "b"});
}

TEST_CASE("Elastic: one that is accused a second time within ten minutes must end") {
  for (const std::int64_t minutes : {9, 11}) {
    Committing s;
    const auto accuse = [&](std::int64_t at_ms, std::uint64_t view) {
      s.time_ms = at_ms;
      s.post_ready("a", {view - 1, 41}, {.accused = {"c"}});
      s.post_ready("b", {view - 1, 41}, {.accused = {"c"}});
      s.post_ready("c", {view - 1, 41}, {}, "flipped");
      s.close("a", s.of["a"], view);
      REQUIRE(s.fold.view.number == view);
    };
    accuse(1000, 2);
    for (const auto& id : abc) s.post_ready(id, {2, 41});
    s.close("a", s.of["a"], 3);
    accuse(1000 + minutes * 60'000, 4);
    CHECK(s.fold.devices.at("c").expelled_again == (minutes == 9));
    s.hello("c", {1, 4, 4});
    CHECK_FALSE(s.fold.devices.at("c").expelled_again);
  }
}

TEST_CASE("Elastic: whom too few accuse stays; an accuser alone against several is left out") {
  Script s;
  std::map<std::string, std::int64_t> of;
  const std::vector<std::string> all{"a", "b", "c", "d", "e"};
  for (const auto& id : all) of[id] = s.hello(id, {2, 5, 5});
  for (const auto& id : all) s.ready(id, of[id]);
  s.close("a", of["a"]);
  REQUIRE(s.fold.view.members == all);
  for (const auto& id : all) {
    Ready ready{id, of[id], 2, {}, "", ""};
    if (id == "d") ready.accuses = {"a", "b"};
    s.put(ready);
  }
  s.close("a", of["a"], 2);
  CHECK(s.fold.view.members == std::vector<std::string>{"a", "b", "c", "e"});
}

TEST_CASE("Elastic: nobody is left out if no other has the saved state") {
  Committing s;
  s.post_ready("a", {1, 40}, {.accused = {"b"}});
  s.post_ready("c", {1, 30}, {.accused = {"a"}});
  s.close("a", s.of["a"], 2);
  CHECK(s.fold.view.members == std::vector<std::string>{"a", "c"});
  CHECK(s.fold.view.holders == std::vector<std::string>{"a"});
}

TEST_CASE("Elastic: pairs that cannot connect are not put together again") {
  Committing s;
  s.post_ready("a", {1, 41}, {.lost = {"c"}, .unreached = {"c"}});
  s.post_ready("b", {1, 41});
  s.post_ready("c", {1, 41}, {.lost = {"a"}, .unreached = {"a"}});
  s.close("b", s.of["b"], 2);
  CHECK(s.fold.view.members == std::vector<std::string>{"a", "b"});  // the younger session is left out

  Committing restarted;
  restarted.of["c"] = restarted.hello("c", {1, 4, 4});  // a new process may be reachable
  restarted.post_ready("a", {1, 41}, {.lost = {"c"}, .unreached = {"c"}});
  restarted.post_ready("b", {1, 41});
  restarted.post_ready("c", {1, 41});
  restarted.close("b", restarted.of["b"], 2);
  CHECK(restarted.fold.view.members == abc);

  Committing fixed({3, 3, 3});
  fixed.post_ready("a", {1, 41}, {.lost = {"c"}, .unreached = {"c"}});
  fixed.post_ready("b", {1, 41});
  fixed.post_ready("c", {1, 41});
  fixed.close("b", fixed.of["b"], 2);
  CHECK(fixed.fold.view.members == abc);

  Committing holder;
  holder.post_ready("a", {1, 30}, {.lost = {"c"}, .unreached = {"c"}});
  holder.post_ready("b", {1, 30});
  holder.post_ready("c", {1, 41});
  holder.close("b", holder.of["b"], 2);
  CHECK(holder.fold.view.members == std::vector<std::string>{"b", "c"});  // only c has the saved state
}

TEST_CASE("Cool-down: none after the first loss, then 15 s, twice as long each time, 5 min at most") {
  DeviceEntry device;
  for (const std::int64_t seconds : {0, 15, 30, 60, 120, 240, 300, 300, 300}) {
    note_break(device, 500'000);
    CHECK(cools_until(device) == (seconds == 0 ? 0 : 500'000 + seconds * 1000));
  }
  CHECK(device.breaks.size() == breaks_max);
  note_break(device, 500'000 + 10 * 60'000 + 1);
  CHECK(cools_until(device) == 0);  // the others are forgotten
}

TEST_CASE(
    "Cool-down: it counts losses and restarts, but neither a LEAVE nor a view that includes the device") {
  Committing s;
  const auto breaks = [&](const char* id) { return s.fold.devices.at(id).breaks.size(); };
  s.time_ms = 1000;
  s.post_ready("a", {1, 41}, {.lost = {"b", "c"}});
  s.close("a", s.of["a"], 2);
  CHECK(breaks("b") == 1);
  s.of["b"] = s.hello("b", {1, 4, 4});  // the same loss
  CHECK(breaks("b") == 1);
  for (const auto* id : {"a", "b"}) s.post_ready(id, {2, 41});
  s.close("a", s.of["a"], 3);
  REQUIRE(s.fold.view.members.size() == 2);
  CHECK(breaks("a") == 0);
  s.of["b"] = s.hello("b", {1, 4, 4});  // restarted before anybody missed it
  CHECK(breaks("b") == 2);
  s.leave("a", s.of["a"]);
  s.hello("a", {1, 4, 4});
  CHECK(breaks("a") == 0);
}

TEST_CASE("Cool-down: one that is lost again and again waits, says how long, and holds nobody up") {
  Group g;
  for (const auto& id : abcd) g.start(id, {2, 4, 4});
  g.run(300ms);
  REQUIRE(g.formed(abcd));
  const auto lose_d = [&] {
    g.nodes.erase("d");
    for (auto& [name, node] : g.nodes) {
      node.view.reset();
      node.membership->leave_view("peer d is lost", {.lost = {"d"}});
    }
    g.run(500ms);
    REQUIRE(g.formed(abc));
    g.start("d", {2, 4, 4});
    g.run(500ms);
  };
  const auto take_in = [&] {
    for (const auto& id : abc) {
      g.nodes.at(id).view.reset();
      g.nodes.at(id).membership->leave_view("devices join");
    }
    g.run(300ms);
    return g.formed(abcd);
  };
  lose_d();
  CHECK(g.nodes.at("a").membership->joiner_waits());
  CHECK(take_in());
  for (const auto wait : {15s, 30s}) {
    lose_d();
    CHECK_FALSE(g.nodes.at("a").membership->joiner_waits());
    CHECK(g.nodes.at("d").membership->joining());
    CHECK(g.nodes.at("d").membership->cooling_down());
    CHECK_FALSE(g.nodes.at("a").membership->cooling_down());
    const auto why = g.nodes.at("d").membership->waiting_for();
    CHECK(why.front().starts_with(std::to_string(wait.count()) + " s to pass: it was lost "));
    CHECK_FALSE(take_in());
    CHECK(g.formed(abc));
    g.run(wait + 6s);
    CHECK(g.nodes.at("a").membership->joiner_waits());
    CHECK_FALSE(g.nodes.at("d").membership->cooling_down());
    CHECK(take_in());
  }
}

TEST_CASE("Cool-down: below min nobody cools down") {
  Committing s({2, 4, 4});
  for (int i = 0; i < 3; ++i) {
    s.of["b"] = s.hello("b", {2, 4, 4});
    s.of["c"] = s.hello("c", {2, 4, 4});
    for (const auto* id : {"a", "b"}) s.post_ready(id, {s.fold.view.number, 41});
    s.close("a", s.of["a"], s.fold.view.number + 1);
    CHECK(s.fold.view.members == std::vector<std::string>{"a", "b"});
  }
}
