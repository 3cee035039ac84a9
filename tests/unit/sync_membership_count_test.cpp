// Start of the count of --stop-after: the same for all devices, across views and restarts.
#include <doctest/doctest.h>

#include "sync/membership/snapshot.h"
#include "tests/support/fold_script.h"
#include "tests/support/membership_group.h"

using namespace rivulet;
using namespace rivulet::sync::membership;
using namespace std::chrono_literals;
using Group = rivulet::testing::MembershipGroup;

namespace {

using Sessions = std::map<std::string, std::int64_t>;

/// State announced in READY.
struct Held {
  Stamp stamp;
  std::uint64_t rows = 0;
  bool limited = true;
};

struct Script : rivulet::testing::FoldScript {
  Sessions start(const std::vector<std::string>& ids) {
    Sessions sessions;
    for (const auto& id : ids) sessions[id] = hello(id, static_cast<std::uint32_t>(ids.size()));
    return sessions;
  }
  /// READY of all, and CLOSE.
  void form_view(const Sessions& sessions, const std::map<std::string, Held>& held) {
    const std::uint64_t view = fold.view.number + 1;
    for (const auto& [id, session] : sessions) {
      const Held& h = held.at(id);
      put(Ready{id, session, view, h.stamp, "d" + std::to_string(h.stamp.step), "", h.rows, h.limited});
    }
    close(sessions.begin()->first, sessions.begin()->second, view);
    REQUIRE(fold.view.number == view);
  }
  void form_alike(const Sessions& sessions, const Held& held) {
    std::map<std::string, Held> all;
    for (const auto& [id, session] : sessions) all[id] = held;
    form_view(sessions, all);
  }
  void leave_as(const std::string& device, std::int64_t session, Ends ends) {
    put(Leave{device, session, "why", WhyNot::none, ends});
  }
  [[nodiscard]] std::optional<Clocks> from() const { return fold.view.counts_from; }
};

/// A view of a, b and c that counts from step 0, now at step 40.
Sessions a_counting_group(Script& s) {
  auto of = s.start({"a", "b", "c"});
  s.form_alike(of, {{0, 0}, 0});
  REQUIRE(s.from() == Clocks{0, 0});
  return of;
}
const Held later{{1, 40}, 400};

}  // namespace

TEST_CASE("Count: it begins with what the view starts from, as its holder says it") {
  Script s;
  const auto of = s.start({"a", "b"});
  s.form_view(of, {{"a", {{0, 0}, 0}}, {"b", {{0, 70}, 711}}});
  CHECK(s.from() == Clocks{70, 711});
}

TEST_CASE("Count: it goes on when a member, and when all of them, are killed and started again") {
  Script s;
  auto of = a_counting_group(s);
  of["b"] = s.hello("b", 3);
  s.form_view(of, {{"a", later}, {"b", {{0, 0}, 0}}, {"c", later}});
  CHECK(s.from() == Clocks{0, 0});
  of = s.start({"a", "b", "c"});
  s.form_alike(of, {{2, 90}, 900});
  CHECK(s.from() == Clocks{0, 0});
}

TEST_CASE("Count: it begins anew behind an end in good order, and behind no other") {
  Script s;
  auto of = a_counting_group(s);
  bool anew = true;
  SUBCASE("the limit was reached: one says so for all") {
    s.leave_as("b", of["b"], Ends::group);
  }
  SUBCASE("all were asked to go") {
    for (const auto& [id, session] : of) s.leave_as(id, session, Ends::device);
  }
  SUBCASE("the job was stopped") {
    s.stop();
  }
  SUBCASE("a member was asked to go and came back while the others stayed") {
    for (const char* id : {"a", "b", "c"}) {
      s.leave_as(id, of[id], Ends::device);
      of[id] = s.hello(id, 3);
    }
    anew = false;
  }
  SUBCASE("two were asked to go, the third was killed") {
    for (const char* id : {"a", "b"}) s.leave_as(id, of[id], Ends::device);
    anew = false;
  }
  SUBCASE("all ended by an error") {
    for (const auto& [id, session] : of) s.leave_as(id, session, Ends::nothing);
    anew = false;
  }
  SUBCASE("a device that is in no view says that all end") {
    const auto x = s.hello("x", 3);
    s.leave_as("x", x, Ends::group);
    anew = false;
  }
  of = s.start({"a", "b", "c"});
  s.form_alike(of, later);
  CHECK(s.from() == (anew ? Clocks{40, 400} : Clocks{0, 0}));
  CHECK_FALSE(s.fold.view.ended);
}

TEST_CASE("Count: it begins anew in a group that goes back behind where it began") {
  Script s;
  auto of = s.start({"a", "b"});
  s.form_alike(of, {{0, 70}, 700});
  for (const Held& held : {Held{{1, 70}, 700}, Held{{2, 95}, 990}}) {
    of = s.start({"a", "b"});
    s.form_alike(of, held);
    CHECK(s.from() == Clocks{70, 700});
  }
  of = s.start({"a", "b"});
  s.form_alike(of, {{3, 60}, 610});
  CHECK(s.from() == Clocks{60, 610});
  of = s.start({"a", "b"});
  s.form_alike(of, {{4, 65}, 600});
  CHECK(s.from() == Clocks{65, 600});
}

TEST_CASE("Count: nobody counts, and the next who does begins anew") {
  Script s;
  auto of = a_counting_group(s);
  of = s.start({"a", "b", "c"});
  s.form_alike(of, {{1, 40}, 400, false});
  CHECK_FALSE(s.from());
  of = s.start({"a", "b", "c"});
  s.form_view(of, {{"a", {{2, 60}, 600, false}}, {"b", {{2, 60}, 600, true}}, {"c", {{2, 60}, 600, false}}});
  CHECK(s.from() == Clocks{60, 600});
}

TEST_CASE("Count: it goes on while the only device with a limit is away, unless that has left") {
  Script s;
  Sessions of;
  for (const char* id : {"b", "c", "z"}) of[id] = s.hello(id, GroupSizes{1, 3, 3});
  const auto held = [](Stamp stamp, bool limited) { return Held{stamp, stamp.step * 10, limited}; };
  s.form_view(of, {{"z", held({}, true)}, {"b", held({}, false)}, {"c", held({}, false)}});
  REQUIRE(s.from() == Clocks{0, 0});
  const Sessions rest{{"b", of["b"]}, {"c", of["c"]}};
  bool left = false;
  SUBCASE("lost") {}
  SUBCASE("restarted, and not ready yet") {
    of["z"] = s.hello("z", GroupSizes{1, 3, 3});
  }
  SUBCASE("left") {
    s.leave_as("z", of["z"], Ends::device);
    left = true;
  }
  s.form_alike(rest, held({1, 40}, false));
  CHECK(s.from() == (left ? std::nullopt : std::optional(Clocks{0, 0})));
  CHECK(snapshot_of(s.fold).find("\"limited\":true") != std::string::npos);
  of["z"] = s.hello("z", GroupSizes{1, 3, 3});
  s.form_view(of, {{"z", held({1, 40}, true)}, {"b", held({2, 60}, false)}, {"c", held({2, 60}, false)}});
  CHECK(s.from() == (left ? Clocks{60, 600} : Clocks{0, 0}));
  of["z"] = s.hello("z", GroupSizes{1, 3, 3});  // without a limit
  s.form_view(of, {{"z", held({3, 80}, false)}, {"b", held({3, 80}, false)}, {"c", held({3, 80}, false)}});
  CHECK_FALSE(s.from());
}

TEST_CASE("Count: a new run knows nothing of it") {
  Script s;
  auto of = a_counting_group(s);
  for (const auto& [id, session] : of) s.leave_as(id, session, Ends::nothing);
  for (const char* id : {"a", "b", "c"}) of[id] = s.hello(id, 3, "h", true);
  REQUIRE(s.fold.run.number == 2);
  s.form_alike(of, {{0, 0}, 5});
  CHECK(s.from() == Clocks{0, 5});
}

TEST_CASE("Count: a snapshot has it, and says nothing where there is nothing") {
  Script s;
  auto of = a_counting_group(s);
  s.leave_as("a", of["a"], Ends::device);
  s.put(Ready{"b", of["b"], 2, {1, 40}, "d40", "", 400, true, true});
  s.fold.ignored = {};
  const auto back = [&] {
    Snap snap{"b", of["b"], s.fold.next_offset, "", snapshot_of(s.fold)};
    snap.hash = snapshot_hash(snap.fold);
    return fold_of(snap);
  };
  REQUIRE(back());
  CHECK((*back() == s.fold));
  s.leave_as("c", of["c"], Ends::group);
  REQUIRE(back());
  CHECK(back()->view.ended);
  Script plain;
  plain.form({"a", "b"});
  plain.leave("a", plain.fold.devices.at("a").session);
  const std::string text = snapshot_of(plain.fold);
  for (const char* word : {"counts_from", "ended", "in_order", "ready_", "limited"})
    CHECK(text.find(word) == std::string::npos);
}

TEST_CASE("Count: members are told with the view, the same as a device that reads the log later") {
  Group g;
  const auto start_all = [&](Stamp held, std::uint64_t rows, bool limited) {
    for (const char* id : {"a", "b"}) {
      auto config = g.config(id, 2);
      config.limited = limited;
      g.start(config);
      g.nodes.at(id).membership->announce_state(held, "d" + std::to_string(held.step), rows);
    }
    g.run(300ms);
    REQUIRE(g.formed({"a", "b"}));
  };
  start_all({0, 70}, 711, true);
  CHECK(g.nodes.at("a").view->counts_from == Clocks{70, 711});
  CHECK(g.nodes.at("b").view->counts_from == Clocks{70, 711});
  g.kill_all();
  start_all({1, 95}, 990, true);
  CHECK(g.nodes.at("a").view->number == 2);
  CHECK(g.nodes.at("a").view->counts_from == Clocks{70, 711});
  for (const char* id : {"a", "b"}) g.nodes.at(id).membership->leave_group("ended", Ends::group);
  start_all({2, 120}, 1200, false);
  CHECK_FALSE(g.nodes.at("a").view->counts_from);
}
