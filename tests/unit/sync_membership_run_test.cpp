#include <doctest/doctest.h>

#include "sync/membership/records.h"
#include "tests/support/membership_group.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::membership;
using namespace std::chrono_literals;
using Group = rivulet::testing::MembershipGroup;

TEST_CASE("Membership: a newer session of the same device ends the older one and is named") {
  Group g;
  g.start("a", 2);
  g.run(100ms);
  auto newer = g.config("a", 2);
  newer.hello.host = "spare";
  newer.hello.pid = 4242;
  g.start(newer, "a-again");
  g.run(100ms);
  CHECK(g.error("a") ==
        "superseded: a newer session of device a was started on host spare (pid 4242) and takes its "
        "place. If these are two devices, give each its own device.id");
  CHECK(g.error("a-again") == "none");
}

TEST_CASE("Membership: a state of another run is refused at once, with what to do") {
  Group group;
  group.start("a", 2);
  group.start("b", 2);
  group.nodes.at("a").membership->announce_state({3, 500}, "d", 5000);
  group.run(1s);
  const auto& error = group.nodes.at("a").error;
  REQUIRE(error);
  CHECK(error->code == ErrorCode::invalid_config);
  CHECK(
      error->message ==
      "the saved state 3.500 of a belongs to a different run: the control topic of job mnist has 0 views. To "
      "start over, start every device with --new-run");
  CHECK_FALSE(group.nodes.at("b").error);
}

TEST_CASE("Membership: who was replaced says so, and a third swap within five minutes ends both") {
  Group g;
  std::string last;
  for (int i = 0; i < 4; ++i) {
    auto config = g.config("a", 2);
    config.hello.host = i % 2 == 0 ? "left" : "right";
    config.hello.pid = 100 + i;
    const std::string name = "a-" + std::to_string(i);
    g.start(config, name);
    g.run(200ms);
    if (i > 0)
      CHECK(g.error(last).starts_with("superseded: a newer session of device a was started on host "));
    if (i < 3) CHECK(g.error(name) == "none");
    last = name;
  }
  CHECK(
      g.error("a-3") ==
      "superseded: device a was started in two places: 3 times within 5 minutes, a newer session replaced a "
      "running one, most recently left (pid 102) by right (pid 103). Both have ended. Start one, or give "
      "each "
      "its own device.id");
}

TEST_CASE("Membership: a device that is killed and started again is never taken for two") {
  Group g;
  for (int life = 0; life < 10; ++life) {
    g.start("a", 2);  // the one before was killed
    g.run(100ms);
    REQUIRE(g.error("a") == "none");
  }
}

TEST_CASE("Membership: a device that leaves while the group forms is not waited for in vain") {
  Group g;
  g.start("a", 2);
  g.start("b", 2);
  for (auto& entry : g.nodes) entry.second.step(g.now);
  g.run(10ms);
  g.nodes.at("b").membership->leave_group("asked to end", Ends::device);
  g.nodes.erase("b");
  g.run(3s);
  CHECK_FALSE(g.nodes.at("a").view);
  CHECK(g.nodes.at("a").membership->waiting_for() == std::vector<std::string>{"b"});
  g.start("b", 2);
  g.run(300ms);
  CHECK(g.formed({"a", "b"}));
}

TEST_CASE("Membership: a STOP reaches every session that began before it, and none that begins later") {
  Group g;
  g.form({"a", "b"});
  CHECK_FALSE(g.nodes.at("a").membership->stop_requested());
  REQUIRE(g.log.open()->append(encode(Stop{"n", "desk", 7}, "mnist").value()));
  g.start("c", 2);  // its HELLO follows the STOP
  g.run(100ms);
  CHECK(g.nodes.at("a").membership->stop_requested());
  CHECK(g.nodes.at("b").membership->stop_requested());
  CHECK_FALSE(g.nodes.at("c").membership->stop_requested());
  g.kill_all();
  for (const auto* id : {"a", "b"}) g.start(id, 2);
  g.run(500ms);
  CHECK(g.formed({"a", "b"}));
  CHECK_FALSE(g.nodes.at("a").membership->stop_requested());
}

TEST_CASE("Membership: a group that has lost the state it saved does not start over by itself") {
  Group g;
  g.form({"a", "b"});
  for (auto& entry : g.nodes) REQUIRE(entry.second.membership->post_saved({1, 40}, "d40", "file"));
  g.run(100ms);
  g.kill_all();
  g.start("a", 2);
  g.run(10s);  // b may have it
  CHECK(g.error("a") == "none");
  g.start("b", 2);
  g.run(4s);
  CHECK(g.error("a") == "none");  // the killed session of b gets time to answer
  g.run(5s);
  const std::string expected =
      "invalid_config: the group's saved state (1.40) is on none of a, b: start a device that has "
      "it "
      "in its checkpoint folder, restore an older one on every device (rivulet checkpoint restore), "
      "or start all with --new-run to start over";
  CHECK(g.error("a") == expected);
  CHECK(g.error("b") == expected);
}

TEST_CASE(
    "Membership: a new run is joined by a device that wants it or is empty; an old state is refused by "
    "name") {
  Group g;
  g.form({"a", "b", "c"});
  REQUIRE(g.log.open()->append(encode(Stop{"n", "desk", 7}, "mnist").value()));
  g.kill_all();
  const auto anew = [&](const std::string& id) {
    auto config = g.config(id, 3);
    config.hello.new_run = true;
    g.start(config);
  };
  anew("a");
  g.run(50ms);
  anew("b");
  g.start("c", 3);
  g.nodes.at("c").membership->announce_state({1, 40}, "d40", 400);
  g.run(500ms);
  CHECK(g.error("c") ==
        "invalid_config: the saved state 1.40 of c belongs to an earlier run: run 2 of job mnist began after "
        "view "
        "1. "
        "Start this device with --new-run, too: its old checkpoints are kept aside");
  g.start("c", 3);  // empty
  g.run(500ms);
  CHECK(g.formed({"a", "b", "c"}));
  CHECK(g.nodes.at("a").membership->fold().run.number == 2);
  CHECK(g.nodes.at("a").view->number == 2);
  anew("d");  // during a run that has not ended
  g.run(500ms);
  CHECK(g.error("d").starts_with(
      "invalid_config: run 2 of job mnist has not ended: a (host host-a, pid 100), b"));
  CHECK(g.formed({"a", "b", "c"}));
}
