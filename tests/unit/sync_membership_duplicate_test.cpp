// Two processes with one id: a newcomer that can serve takes the place; one that cannot never displaces a
// running session.
#include <doctest/doctest.h>

#include "tests/support/membership_group.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::membership;
using namespace std::chrono_literals;
using Group = rivulet::testing::MembershipGroup;

namespace {

/// A group that trains and has saved 1.40.
void form_and_save(Group& g, const std::vector<std::string>& ids) {
  g.form(ids);
  for (auto& entry : g.nodes) REQUIRE(entry.second.membership->post_saved({1, 40}, "d40", "file"));
  g.run(100ms);
  REQUIRE(g.nodes.at(ids.front()).membership->fold().committed.stamp == Stamp{1, 40});
  for (auto& entry : g.nodes) entry.second.membership->announce_state({1, 40}, "d40", 400);
}

MembershipConfig twin(Group& g, std::uint32_t devices) {
  auto config = g.config("a", devices);
  config.hello.host = "spare";
  config.hello.pid = 4242;
  return config;
}

const std::string keeps =
    "device a is running on host host-a (pid 100) and keeps its place, because this process cannot replace "
    "it: ";

const std::string or_is_another = ". If these are two devices, give each its own device.id";

/// The newcomer ends; the present devices are unaffected.
void check_kept(Group& g, const std::vector<std::string>& ids, const std::string& why) {
  CAPTURE(why);
  const auto token = g.nodes.at("a").view->token;
  g.run(2s);
  CHECK(g.error("twin") == "invalid_config: " + keeps + why + or_is_another);
  g.run(10s);
  CHECK(g.error("a") == "none");
  CHECK(g.formed(ids));
  CHECK(g.nodes.at("a").view->token == token);
}

}  // namespace

TEST_CASE("Membership: a second process with a state of another run leaves the first one where it is") {
  Group g;
  form_and_save(g, {"a", "b"});
  g.start(twin(g, 2), "twin");
  g.nodes.at("twin").membership->announce_state({9, 500}, "d", 5000);
  check_kept(
      g, {"a", "b"},
      "the saved state 9.500 of a belongs to a different run: the control topic of job mnist has 1 views. To "
      "start over, start every device with --new-run");
}

TEST_CASE(
    "Membership: a second process with an empty folder displaces nobody if nobody has the state for it") {
  Group g;
  form_and_save(g, {"a"});
  g.start(twin(g, 1), "twin");
  check_kept(g, {"a"}, "the group's saved state (1.40) is on no other device");
}

TEST_CASE("Membership: a second process with another configuration displaces nobody") {
  Group g;
  form_and_save(g, {"a", "b"});
  auto config = twin(g, 2);
  config.hello.config["job.seed"] = "7";
  config.hello.config_hash = "other";
  g.start(config, "twin");
  g.nodes.at("twin").membership->announce_state({1, 40}, "d40", 400);
  check_kept(g, {"a", "b"},
             "'job.seed' is not set on a (host host-a, pid 100) and 7 on a (host spare, pid 4242)");

  Group claims;
  form_and_save(claims, {"a", "b"});
  auto other = twin(claims, 2);
  other.hello.partitions = {"mnist:b"};
  claims.start(other, "twin");
  check_kept(claims, {"a", "b"},
             "partition mnist:b is claimed by b and by a; every device needs its own partitions "
             "(source.partitions)");
}

TEST_CASE("Membership: a session that waits for others keeps its place as well") {
  Group g;
  form_and_save(g, {"a", "b"});
  g.nodes.erase("b");
  g.nodes.at("a").membership->leave_view("peer b is lost");
  g.run(1s);
  g.start(twin(g, 2), "twin");  // empty, and b is not there to supply a state
  g.run(2s);
  CHECK(g.error("twin") ==
        "invalid_config: " + keeps + "the group's saved state (1.40) is on no other device" + or_is_another);
  CHECK(g.error("a") == "none");
  g.start("b", 2);
  g.run(300ms);
  CHECK(g.formed({"a", "b"}));
}

TEST_CASE("Membership: a second process that can serve still takes the place") {
  Group g;
  form_and_save(g, {"a", "b"});
  g.start(twin(g, 2), "twin");  // empty: b supplies the state
  g.run(200ms);
  CHECK(g.error("a").starts_with("superseded: a newer session of device a was started on host spare"));
  CHECK(g.error("twin") == "none");
  g.run(500ms);
  REQUIRE(g.nodes.at("twin").view);
  CHECK(g.nodes.at("twin").view->members == std::vector<std::string>{"a", "b"});

  Group lone;
  form_and_save(lone, {"a"});
  lone.start(twin(lone, 1), "twin");
  lone.nodes.at("twin").membership->announce_state({1, 40}, "d40", 400);
  lone.run(200ms);
  CHECK(lone.error("a").starts_with("superseded: "));
  CHECK(lone.nodes.at("twin").view);
}

TEST_CASE("Membership: the place of a session that is dead is taken, whatever the newcomer brings") {
  Group g;
  form_and_save(g, {"a"});
  g.kill_all();
  g.start(twin(g, 1), "twin");  // its disk is lost
  g.run(4s);
  CHECK(g.error("twin") == "none");
  CHECK(g.nodes.at("twin").membership->waiting_for().front().starts_with(
      "a record of the earlier session of a (host host-a, pid 100)"));
  g.run(6s);
  CHECK(
      g.error("twin").starts_with("invalid_config: the group's saved state (1.40) is on none of "
                                  "a: start a device that has it"));
}

TEST_CASE("Membership: a device that has left gives its place up at once") {
  Group g;
  form_and_save(g, {"a", "b"});
  for (auto& entry : g.nodes) entry.second.membership->leave_group("asked to end", Ends::device);
  g.kill_all();
  g.start("a", 2);
  g.start("b", 2);
  g.nodes.at("b").membership->announce_state({1, 40}, "d40", 400);
  g.run(300ms);
  CHECK(g.formed({"a", "b"}));
}
