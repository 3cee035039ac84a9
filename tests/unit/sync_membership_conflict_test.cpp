#include <doctest/doctest.h>

#include "tests/support/membership_group.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::membership;
using namespace std::chrono_literals;
using Group = rivulet::testing::MembershipGroup;

TEST_CASE("Membership: different configurations name the key, both values and both devices on both") {
  Group g;
  g.start("a", 2);
  g.run(100ms);
  g.start("b", 2, "50ms");
  g.run(2900ms);
  CHECK(g.error("a") == "none");
  g.run(300ms);
  const std::string expected = "invalid_config: 'batch.tick' is 100ms on a and 50ms on b";
  CHECK(g.error("a") == expected);
  CHECK(g.error("b") == expected);
}

TEST_CASE("Membership: a mismatching device that comes back corrected within the grace forms the group") {
  Group g;
  g.start("a", 2);
  g.start("b", 2, "50ms");
  g.run(2s);
  g.start("b", 2);
  g.run(2s);
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
  CHECK(g.error("a") == "invalid_config: 'batch.tick' is 100ms on a and 50ms on b");
}

TEST_CASE("Membership: a partition claimed twice names both devices and the partition") {
  Group g;
  auto a = g.config("a", 2);
  auto b = g.config("b", 2);
  b.hello.partitions = a.hello.partitions;
  g.start(a);
  g.start(b);
  g.run(3500ms);
  CHECK(g.error("b") ==
        "invalid_config: partition mnist:a is claimed by a and by b; every device needs its own "
        "(source.partitions)");
  CHECK(g.error("a") == g.error("b"));
}

TEST_CASE("Membership: more devices than job.devices is an error, in forming and for a running group") {
  Group g;
  for (const auto* id : {"a", "b", "c"}) g.start(id, 2);
  // The HELLOs of all three come before the first READY, so that no two of them close first.
  g.run(3500ms);
  CHECK(g.error("a") == "invalid_config: 3 devices want to be in a group of job.devices = 2: a, b, c");

  Group running;
  running.form({"a", "b"});
  running.start("c", 2);
  running.start("d", 5);
  running.run(4s);
  CHECK(running.formed({"a", "b"}));
  CHECK(running.error("c") == "invalid_config: 3 devices want to be in a group of job.devices = 2: a, b, c");
  CHECK(running.error("d") == "invalid_config: 'job.devices' is 2 on a and 5 on d");
}
