// Devices that cannot form one group, before the first view; and devices that join a running one.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/membership_group.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::membership;
using namespace std::chrono_literals;
using Group = rivulet::testing::MembershipGroup;

namespace {

/// They keep waiting, and report the cause.
void check_waits(Group& g, const std::vector<std::string>& ids, const std::string& why) {
  for (const auto& id : ids) {
    CAPTURE(id);
    CHECK(g.error(id) == "none");
    const auto said = g.nodes.at(id).membership->waiting_for();
    CHECK(std::find(said.begin(), said.end(), "a correction (" + why + ")") != said.end());
  }
}

}  // namespace

TEST_CASE("Membership: different configurations name the key, both values and both devices on both") {
  Group g;
  g.start("a", 2);
  g.run(100ms);
  g.start("b", 2, "50ms");
  g.run(20s);
  check_waits(g, {"a", "b"}, "'batch.tick' is 100ms on a and 50ms on b");
}

TEST_CASE("Membership: a mismatching device that comes back corrected forms the group") {
  Group g;
  g.start("a", 2);
  g.start("b", 2, "50ms");
  g.run(20s);
  g.start("b", 2);
  g.run(300ms);
  CHECK(g.error("a") == "none");
  CHECK(g.formed({"a", "b"}));
}

TEST_CASE("Membership: a third device that keeps restarting cannot hide a mismatch") {
  Group g;
  g.start("a", 4);
  g.start("b", 4, "50ms");
  for (int i = 0; i < 8; ++i) {
    g.start("c", 4);
    g.run(500ms);
  }
  check_waits(g, {"a", "b", "c"}, "'batch.tick' is 100ms on a and 50ms on b");
}

TEST_CASE("Membership: a partition claimed twice names both devices and the partition") {
  Group g;
  auto a = g.config("a", 2);
  auto b = g.config("b", 2);
  b.hello.partitions = a.hello.partitions;
  g.start(a);
  g.start(b);
  g.run(20s);
  check_waits(g, {"a", "b"},
              "partition mnist:a is claimed by a and by b; every device needs its own partitions "
              "(source.partitions)");
}

TEST_CASE(
    "Membership: more devices than job.devices wait while they form, and are told by a group that runs") {
  Group g;
  for (const auto* id : {"a", "b", "c"}) g.start(id, 2);
  // The HELLOs of all three precede the first READY, so that no two of them close first.
  g.run(20s);
  check_waits(g, {"a", "b", "c"}, "3 devices try to join a group of job.devices = 2: a, b, c");

  Group running;
  running.form({"a", "b"});
  running.start("c", 2);
  running.start("d", 5);
  running.run(4s);
  CHECK(running.formed({"a", "b"}));
  CHECK(running.error("c") == "invalid_config: 3 devices try to join a group of job.devices = 2: a, b, c");
  CHECK(
      running.error("d").starts_with("invalid_config: 'job.devices' is 2 on a and 5 on d. The group keeps"));
}
