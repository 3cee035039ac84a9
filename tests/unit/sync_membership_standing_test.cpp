// A formed group keeps its configuration while a live device has it: a device that differs ends alone.
#include <doctest/doctest.h>

#include <algorithm>

#include "sync/membership/records.h"
#include "tests/support/membership_group.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::membership;
using namespace std::chrono_literals;
using Group = rivulet::testing::MembershipGroup;

namespace {

const std::vector<std::string> abc{"a", "b", "c"};

MembershipConfig differing(Group& g, const std::string& id, const std::string& key,
                           const std::string& value) {
  auto config = g.config(id, 3);
  config.hello.config[key] = value;
  config.hello.config_hash += key + value;
  return config;
}

/// a, b and c were a group; c is dead, the others wait for it.
void lose_c(Group& g) {
  g.form(abc);
  g.nodes.erase("c");
  for (auto& entry : g.nodes) entry.second.membership->leave_view("peer c is lost");
  g.run(200ms);
  REQUIRE(g.nodes.at("a").membership->waiting_for() == std::vector<std::string>{"c"});
}

bool waits_for(Group& g, const std::string& id, const std::string& whom) {
  const auto names = g.nodes.at(id).membership->waiting_for();
  return std::find(names.begin(), names.end(), whom) != names.end();
}

void check_alone(Group& g, const MembershipConfig& stranger, const std::string& sentence) {
  CAPTURE(sentence);
  lose_c(g);
  g.start(stranger);
  g.run(2500ms);
  CHECK(g.error("x") == "none");  // a device that is being replaced ends no other
  const auto words = g.nodes.at("a").membership->waiting_for();
  CHECK(waits_for(g, "a", "c"));
  REQUIRE(words.size() == 2);
  CHECK(words[1] == "x to leave (" + sentence.substr(0, sentence.find(". ")) + ")");
  g.run(2s);
  CHECK(g.error("x") == "invalid_config: " + sentence);
  g.run(60s);
  for (const auto* id : {"a", "b"}) {
    CHECK(g.error(id) == "none");
    CHECK(g.nodes.at(id).membership->waiting_for() == std::vector<std::string>{"c"});
  }
  g.start("c", 3);
  g.run(300ms);
  CHECK(g.formed(abc));
}

const std::string kept =
    ". The group keeps the configuration of its last view while a device uses it, so x is rejected: "
    "start it with that configuration, or end the job with 'rivulet stop' and start all devices with the new "
    "one";

}  // namespace

TEST_CASE("Membership: a stranger with another value is rejected alone, and the members wait on") {
  for (const auto& [key, value] : {std::pair("train.optimizer.lr", "0.1"), std::pair("job.seed", "7")}) {
    Group g;
    check_alone(g, differing(g, "x", key, value),
                "'" + std::string(key) + "' is not set on a and " + value + " on x" + kept);
  }
}

TEST_CASE("Membership: a stranger with another size of the group is rejected alone") {
  for (const std::uint32_t devices : {2U, 5U}) {
    Group g;
    check_alone(g, g.config("x", devices),
                "'job.devices' is 3 on a and " + std::to_string(devices) + " on x" + kept);
  }
}

TEST_CASE("Membership: a stranger that claims a member's partition is rejected alone") {
  Group g;
  auto stranger = g.config("x", 3);
  stranger.hello.partitions = {"mnist:b", "mnist:x"};
  check_alone(g, stranger,
              "partition mnist:b is claimed by b and by x; every device needs its own partitions "
              "(source.partitions). b "
              "had it in the last view, so x is rejected");
}

TEST_CASE("Membership: a member that comes back with another configuration is rejected alone, too") {
  Group g;
  lose_c(g);
  g.start(differing(g, "c", "train.optimizer.lr", "0.1"));
  g.run(10s);
  CHECK(g.error("c").starts_with("invalid_config: 'train.optimizer.lr' is not set on a and 0.1 on c"));
  CHECK(g.error("a") == "none");
  auto claims = g.config("c", 3);
  claims.hello.partitions = {"mnist:a"};
  g.start(claims);
  g.run(10s);
  CHECK(g.error("c").starts_with("invalid_config: partition mnist:a is claimed by a and by c"));
  CHECK(g.error("a") == "none");
  CHECK(g.error("b") == "none");
  g.start("c", 3);
  g.run(300ms);
  CHECK(g.formed(abc));
}

TEST_CASE("Membership: one that is rejected and started again without end does not hold the members up") {
  Group g;
  lose_c(g);
  const auto stranger = differing(g, "x", "train.optimizer.lr", "0.1");
  const auto restart = [&] {
    auto again = stranger;
    again.nonce_seed = ++g.seed;
    g.start(again);
    g.run(400ms);
  };
  for (int life = 0; life < 5; ++life) restart();
  g.start("c", 3);
  restart();
  CHECK(g.formed(abc));
}

TEST_CASE("Membership: one that is killed while it is being rejected leaves nothing behind that counts") {
  Group g;
  lose_c(g);
  g.start(differing(g, "x", "train.optimizer.lr", "0.1"));
  g.run(200ms);
  g.start("c", 3);
  g.run(20ms);
  g.nodes.erase("x");
  g.run(300ms);
  CHECK(g.formed(abc));
}

TEST_CASE("Membership: who is left out of a view learns it although it said HELLO before") {
  Group g;
  lose_c(g);
  g.start(differing(g, "x", "train.optimizer.lr", "0.1"));
  g.run(200ms);
  g.start("c", 3);
  g.run(300ms);
  REQUIRE(g.formed(abc));
  CHECK(g.error("x") == "none");
  g.run(4s);
  CHECK(g.error("x").starts_with("invalid_config: 'train.optimizer.lr' is not set on a and 0.1 on x"));
  CHECK(g.formed(abc));
}

TEST_CASE("Membership: a configuration that all live devices share replaces the one of the last view") {
  Group g;
  g.form(abc);
  REQUIRE(g.log.open()->append(encode(Stop{"n", "desk", 7}, "mnist").value()));
  g.kill_all();
  for (const auto& id : abc) g.start(differing(g, id, "train.optimizer.lr", "0.1"));
  g.run(500ms);
  CHECK(g.formed(abc));
}

TEST_CASE("Membership: the same after a kill of all, once nothing has been heard of the earlier sessions") {
  Group g;
  g.form(abc);
  g.kill_all();
  for (const auto& id : abc) g.start(differing(g, id, "train.optimizer.lr", "0.1"));
  g.run(1s);
  CHECK(g.nodes.at("a").membership->waiting_for().front().starts_with(
      "a record of the earlier session of a (host host-a, pid 100)"));
  g.run(6s);
  CHECK(g.formed(abc));
}

TEST_CASE("Membership: a group that never formed has no side: all wait and name the difference") {
  Group g;
  for (const auto* id : {"a", "b"}) g.start(id, 3);
  g.start(differing(g, "c", "job.seed", "7"));
  g.run(60s);
  for (const auto& id : abc) {
    CHECK(g.error(id) == "none");
    CHECK(waits_for(g, id, "a correction ('job.seed' is not set on a and 7 on c)"));
  }
  g.start("c", 3);
  g.run(300ms);
  CHECK(g.formed(abc));
}

TEST_CASE("Membership: live devices that differ among each other, and all from the last view, wait") {
  Group g;
  g.form(abc);
  REQUIRE(g.log.open()->append(encode(Stop{"n", "desk", 7}, "mnist").value()));
  g.kill_all();
  g.start(differing(g, "a", "job.seed", "7"));
  g.start(differing(g, "b", "job.seed", "8"));
  g.run(60s);
  for (const auto* id : {"a", "b"}) {
    CHECK(g.error(id) == "none");
    CHECK(waits_for(g, id, "a correction ('job.seed' is 7 on a and 8 on b)"));
  }
}

TEST_CASE("Membership: who comes for a place that is taken is rejected, a member before a newcomer") {
  Group g;
  lose_c(g);
  g.start("x", 3);  // fits, and is first
  g.start("c", 3);
  for (int i = 0; i < 2; ++i) g.step(g.now);
  g.run(4s);
  CHECK(g.formed(abc));
  CHECK(g.error("x") == "invalid_config: 4 devices try to join a group of job.devices = 3: a, b, c, x");
}

TEST_CASE("Membership: a state that only an absent member has is waited for by name, and ends nobody") {
  Group g;
  g.form(abc);
  for (const auto* id : {"b", "c"}) REQUIRE(g.nodes.at(id).membership->post_saved({1, 40}, "d40", "file"));
  g.run(100ms);
  g.nodes.erase("c");
  for (auto& entry : g.nodes) {
    entry.second.membership->announce_state({1, 39}, "d39", 390);
    entry.second.membership->leave_view("peer c is lost");
  }
  g.run(100ms);
  g.start("x", 3);
  g.run(60s);
  for (const auto* id : {"a", "b", "x"}) {
    CHECK(g.error(id) == "none");
    CHECK(waits_for(g, id, "c, with the group's saved state (1.40)"));
  }
  g.start("c", 3);
  g.nodes.at("c").membership->announce_state({1, 40}, "d40", 400);
  g.run(500ms);
  CHECK(g.formed(abc));
  g.run(4s);
  CHECK(g.error("x") == "invalid_config: 4 devices try to join a group of job.devices = 3: a, b, c, x");
}
