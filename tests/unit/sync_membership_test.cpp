#include <doctest/doctest.h>

#include "core/rng.h"
#include "tests/support/membership_group.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::membership;
using namespace std::chrono_literals;
using Group = rivulet::testing::MembershipGroup;
using rivulet::testing::abcd;

TEST_CASE("Membership: four devices form one view, ranks by sorted id") {
  Group g;
  for (const auto* id : {"d", "b", "a", "c"}) g.start(id, 4);
  g.run(200ms);
  CHECK(g.formed(abcd));
  CHECK(g.nodes.at("c").view->number == 1);
  CHECK(g.log.size() <= 4 + 8 + 1);
  CHECK(g.nodes.at("a").membership->waiting_for().empty());
}

TEST_CASE("Membership: a view says who owns which partitions, to every member alike") {
  Group g;
  g.form(abcd);
  for (const auto& id : abcd) {
    const ViewSpec& view = *g.nodes.at(id).view;
    REQUIRE(view.owners.size() == view.world());
    for (std::uint32_t rank = 0; rank < view.world(); ++rank)
      CHECK(view.owners[rank] == std::vector<std::string>{"mnist:" + view.members[rank]});
  }
}

TEST_CASE("Membership: one device is a group of its own at once") {
  Group g;
  g.start("a", 1);
  g.run(100ms);
  CHECK(g.formed({"a"}));
}

TEST_CASE("Membership: while it waits it says for whom") {
  Group g;
  g.start("a", 3);
  CHECK(g.nodes.at("a").membership->waiting_for() == std::vector<std::string>{"the control log"});
  g.run(100ms);
  CHECK(g.nodes.at("a").membership->waiting_for() == std::vector<std::string>{"2 more devices"});
  g.start("b", 3);
  g.run(100ms);
  CHECK(g.nodes.at("a").membership->waiting_for() == std::vector<std::string>{"1 more device"});
  g.start("c", 3);
  g.run(100ms);
  REQUIRE(g.formed({"a", "b", "c"}));
  g.kill_all();
  g.start("b", 3);
  g.run(100ms);
  CHECK(g.nodes.at("b").membership->waiting_for() == std::vector<std::string>{"a", "c"});
}

TEST_CASE("Membership: the others close when the first member does not, after close_wait") {
  Group g;
  for (const auto* id : {"a", "b", "c"}) g.start(id, 4);
  g.run(1100ms);
  g.start("d", 4);
  // All repeat READY after its HELLO, then the first member dies before its CLOSE.
  for (int i = 0; i < 4; ++i) {
    for (auto& entry : g.nodes) entry.second.step(g.now);
    if (g.nodes.at("d").membership->fold().view.number == 0 && i == 2) g.nodes.erase("a");
  }
  g.run(900ms);
  CHECK_FALSE(g.nodes.at("b").view);
  g.run(300ms);
  REQUIRE(g.nodes.at("b").view);
  CHECK(g.nodes.at("b").view->members ==
        abcd);  // its READY is newer than the last HELLO; connecting will reveal its death
}

TEST_CASE("Membership: a member that starts anew breaks the view and the next one forms") {
  Group g;
  g.form(abcd);
  const auto token = g.nodes.at("a").view->token;
  g.start("c", 4);
  g.nodes.at("c").step(g.now);  // its HELLO alone is enough
  REQUIRE(g.nodes.at("a").membership->poll(g.now));
  CHECK(g.nodes.at("a").membership->view_broken());
  g.run(300ms);
  CHECK(g.formed(abcd));
  CHECK(g.nodes.at("a").view->number == 2);
  CHECK(g.nodes.at("a").view->token > token);
}

TEST_CASE("Membership: a device that left makes the view broken for the others, and all meet in the next") {
  Group g;
  for (const auto& id : abcd) g.start(id, 4);
  g.run(200ms);
  auto& b = *g.nodes.at("b").membership;
  b.leave_view("peer d is lost");
  REQUIRE(b.poll(g.now));
  CHECK_FALSE(b.view_broken());
  REQUIRE(g.nodes.at("a").membership->poll(g.now));
  CHECK(g.nodes.at("a").membership->view_broken());
  CHECK(g.nodes.at("a").membership->fold().devices.at("b").ready->reason == "peer d is lost");
  g.run(300ms);
  CHECK(g.formed(abcd));
  CHECK(g.nodes.at("b").view->number == 2);
}

TEST_CASE("Membership: generations of dead sessions do not keep a restarted group from forming") {
  Rng rng(11);
  Group g;
  for (int generation = 0; generation < 60; ++generation) {
    // Some start at random times, and all are killed while forming or training.
    for (const auto& id : abcd) {
      if (rng.below(5) != 0) g.start(id, 4);
      g.run(10ms * static_cast<int>(rng.below(12)));
    }
    g.run(10ms * static_cast<int>(rng.below(30)));
    g.kill_all();
    if (generation % 4 != 3) continue;
    g.now += 1s;  // else READYs of this generation may count
    for (const auto& id : abcd) {
      CHECK_FALSE(g.nodes.contains(id));
      g.start(id, 4);
      g.run(10ms * static_cast<int>(rng.below(200)));
      if (id != "d") REQUIRE_MESSAGE(!g.nodes.at("a").view, "a view with a device that is not up");
    }
    g.run(500ms);
    REQUIRE_MESSAGE(g.formed(abcd), "generation ", generation);
    g.kill_all();
  }
}

TEST_CASE("Membership: a changed configuration forms although dead sessions of the old one are in the log") {
  Group g;
  for (const auto* id : {"a", "b", "c"}) g.start(id, 4, "50ms");
  g.run(300ms);  // killed while forming: three READYs with the old configuration remain
  g.kill_all();
  g.start("a", 4);
  g.run(10s);  // far longer than mismatch_grace
  CHECK(g.error("a") == "none");
  for (const auto* id : {"b", "c", "d"}) g.start(id, 4);
  g.run(500ms);
  CHECK(g.formed(abcd));
}

TEST_CASE("Membership: fewer devices than before form, whatever the missing one left behind") {
  Group g;
  g.form(abcd);
  g.kill_all();
  for (const auto* id : {"d", "a", "b"}) g.start(id, 4);  // READY for view 2, then killed
  g.run(300ms);
  g.kill_all();
  for (const auto* id : {"a", "b", "c"}) g.start(id, 3);
  g.run(6s);  // the killed sessions get time to answer
  CHECK(g.formed({"a", "b", "c"}));
}

TEST_CASE("Membership: a device under a new name takes the place of a dead one") {
  Group g;
  for (const auto* id : {"a", "b", "c"}) g.start(id, 4);
  auto old = g.config("d", 4);
  g.start(old);
  for (int i = 0; i < 2; ++i) g.nodes.at("d").step(g.now);
  g.nodes.erase("d");
  g.now += 1s;
  g.run(100ms);
  auto renamed = g.config("e", 4);
  renamed.hello.partitions = old.hello.partitions;
  g.start(renamed);
  g.run(500ms);
  CHECK(g.formed({"a", "b", "c", "e"}));
}

TEST_CASE("Membership: a device that dies within a second of the last request costs one connection") {
  Group g;
  for (const auto& id : abcd) g.start(id, 4);
  for (int i = 0; i < 2; ++i) g.nodes.at("d").step(g.now);
  g.nodes.erase("d");
  g.run(500ms);
  CHECK(g.nodes.at("a").view->members == abcd);
  for (auto& [id, node] : g.nodes) {
    node.view.reset();
    node.membership->leave_view("no connection to d", {.lost = {"d"}, .unreached = {"d"}});
  }
  auto renamed = g.config("e", 4);
  renamed.hello.partitions = {"mnist:d"};
  g.start(renamed);
  g.run(500ms);
  CHECK(g.formed({"a", "b", "c", "e"}));
}

TEST_CASE("Membership: a device in conflict with one that has just died waits for a second") {
  Group g;
  for (const auto& id : abcd) g.start(id, 4);
  for (int i = 0; i < 2; ++i) g.nodes.at("d").step(g.now);
  g.nodes.erase("d");
  auto renamed = g.config("e", 4);
  renamed.hello.partitions = {"mnist:d"};
  g.start(renamed);
  g.run(900ms);
  CHECK_FALSE(g.nodes.at("e").view);
  g.run(400ms);
  CHECK(g.formed({"a", "b", "c", "e"}));
}

TEST_CASE("Membership: devices that start within a second ask each other once") {
  Group g;
  constexpr std::size_t devices = 16;
  for (std::size_t i = 0; i < devices; ++i) {
    g.start(std::string(1, static_cast<char>('a' + i)), {1, devices, devices});
    g.run(20ms);
  }
  g.run(300ms);
  CHECK(g.nodes.at("a").view);
  CHECK(g.log.size() <= 4 * devices + 1);  // HELLO, READY, perhaps once more, and an address; CLOSE
}

TEST_CASE("Membership: READYs of dead devices with another configuration end nobody, a second later") {
  Group g;
  for (const auto* id : {"a", "b", "c"}) g.start(id, 4, "50ms");
  g.run(300ms);
  g.kill_all();
  g.start("d", 4);
  g.run(10s);
  CHECK(g.error("d") == "none");
  for (const auto* id : {"a", "b", "c"}) g.start(id, 4);
  g.run(500ms);
  CHECK(g.formed(abcd));
}

TEST_CASE("Membership: a view starts from the best state that its members hold, and names its holders") {
  Group group;
  group.start("a", 2);
  group.start("b", 2);
  for (auto& entry : group.nodes) entry.second.membership->announce_state({}, "d0", 0);
  group.run(2s);
  REQUIRE(group.formed({"a", "b"}));
  CHECK(group.nodes.at("a").view->holders == std::vector<std::uint32_t>{0, 1});
  group.nodes.at("b").membership->announce_state({1, 5}, "d5", 50);  // b has applied a round that a has not
  group.nodes.at("a").membership->announce_state({1, 4}, "d4", 40);
  for (auto& entry : group.nodes) entry.second.membership->leave_view("lost");
  group.run(3s);
  for (auto& entry : group.nodes) {
    REQUIRE(entry.second.view);
    CHECK(entry.second.view->number == 2);
    CHECK(entry.second.view->target == Stamp{1, 5});
    CHECK(entry.second.view->digest == "d5");
    CHECK(entry.second.view->holders == std::vector<std::uint32_t>{1});
  }
  for (auto& entry : group.nodes) CHECK(entry.second.membership->post_saved({2, 6}, "d6", "file"));
  group.run(1s);
  for (auto& entry : group.nodes) CHECK(entry.second.membership->fold().committed == Committed{{2, 6}, "d6"});
}
