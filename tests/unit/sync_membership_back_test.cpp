// A group that resumes from less than it has saved: never by itself, only on request.
#include <doctest/doctest.h>

#include "sync/membership/describe.h"
#include "tests/support/fold_script.h"
#include "tests/support/membership_group.h"

using namespace rivulet;
using namespace rivulet::sync::membership;
using namespace std::chrono_literals;
using Group = rivulet::testing::MembershipGroup;

namespace {

/// a and b have committed 1.40 and were killed; no device has it when they return.
struct Script : rivulet::testing::FoldScript {
  std::int64_t a = -1;
  std::int64_t b = -1;
  Script() {
    auto of = form({"a", "b"});
    saved("a", of["a"], 1, {1, 40});
    saved("b", of["b"], 1, {1, 40});
    REQUIRE(fold.committed.stamp == Stamp{1, 40});
    a = hello("a");
    b = hello("b");
  }
  void post_ready(const std::string& id, std::int64_t session, Stamp stamp, bool goes_back) {
    Ready ready{id, session, fold.view.number + 1, stamp, "d" + std::to_string(stamp.step), ""};
    ready.rolls_back = goes_back;
    put(ready);
  }
};

}  // namespace

TEST_CASE("Going back: less than was saved makes no view, but by a device that says it is to be") {
  Script s;
  s.post_ready("a", s.a, {1, 30}, false);
  s.post_ready("b", s.b, {1, 20}, false);
  s.close("a", s.a, 2);
  CHECK(s.fold.view.number == 1);
  CHECK(text_of(why_not_closable(s.fold, 2)).find("(1.40) is on none of a, b") != std::string::npos);
  s.post_ready("a", s.a, {1, 30}, true);
  CHECK_FALSE(why_not_closable(s.fold, 2));
  s.close("a", s.a, 2);
  REQUIRE(s.fold.view.number == 2);
  CHECK(s.fold.view.target == Stamp{1, 30});
  CHECK(s.fold.view.holders.list() == std::vector<std::string>{"a"});
  s.saved("a", s.a, 2, {2, 31});
  s.saved("b", s.b, 2, {2, 31});
  CHECK(s.fold.committed.stamp == Stamp{2, 31});  // from here on no device needs to repeat it
}

TEST_CASE("Going back: a device that has what was saved gives it to the others, whatever they say") {
  Script s;
  s.post_ready("a", s.a, {1, 30}, true);
  s.post_ready("b", s.b, {1, 40}, false);
  s.close("a", s.a, 2);
  REQUIRE(s.fold.view.number == 2);
  CHECK(s.fold.view.target == Stamp{1, 40});
}

TEST_CASE("Going back: a device says it of the one state that it was told to go back to") {
  Group g;
  g.form({"a"});
  CHECK(g.nodes.at("a").membership->post_saved({1, 40}, "d40", "file"));
  g.run(300ms);
  REQUIRE(g.nodes.at("a").membership->committed().stamp == Stamp{1, 40});
  g.kill_all();
  const auto start = [&](std::optional<Stamp> back_to, Stamp held) {
    auto config = g.config("a", 1);
    config.rollback_to = back_to;
    g.start(config);
    g.nodes.at("a").membership->announce_state(held, "d", 10);
    g.run(10s);  // its last session was killed: the group waits for it
  };
  SUBCASE("not told") {
    start(std::nullopt, {1, 30});
    CHECK(g.error("a").find("(1.40) is on none of a") != std::string::npos);
  }
  SUBCASE("told to go back to another") {
    start(Stamp{1, 30}, {1, 20});
    CHECK(g.error("a").find("(1.40) is on none of a") != std::string::npos);
  }
  SUBCASE("told") {
    start(Stamp{1, 30}, {1, 30});
    CHECK(g.error("a") == "none");
    REQUIRE(g.formed({"a"}));
    CHECK(g.nodes.at("a").view->target == Stamp{1, 30});
  }
}
