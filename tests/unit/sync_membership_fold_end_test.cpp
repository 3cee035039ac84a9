// Ends of a device, a job and a run in the log: LEAVE, STOP, two processes with one id, HELLO of a new run.
#include <doctest/doctest.h>

#include "tests/support/fold_script.h"

using namespace rivulet;
using namespace rivulet::sync::membership;
using Script = rivulet::testing::FoldScript;

namespace {

constexpr std::int64_t minute_ms = 60'000;

std::uint64_t ignored(const Script& s, Ignored reason) {
  return s.fold.ignored.of(reason);
}

}  // namespace

TEST_CASE("Fold: a device that left is in no later view of its session, and what it saved still counts") {
  Script s;
  auto of = s.form({"a", "b"});
  s.leave("b", of["b"], "asked to end");
  CHECK(s.fold.devices.at("b").left == "asked to end");
  CHECK(view_intact(s.fold));
  CHECK(view_left(s.fold));
  s.saved("a", of["a"], 1, {1, 5});
  s.saved("b", of["b"], 1, {1, 5});
  CHECK(s.fold.committed.stamp == Stamp{1, 5});
  s.ready("b", of["b"], 2);
  CHECK(ignored(s, Ignored::stale_session) == 1);
  s.leave("b", of["b"]);  // once is enough
  CHECK(ignored(s, Ignored::stale_session) == 2);
  s.ready("a", of["a"], 2, {1, 5});
  s.close("a", of["a"], 2);
  CHECK(s.fold.view.number == 1);
  of["b"] = s.hello("b");
  CHECK_FALSE(s.fold.devices.at("b").left);
  s.ready("b", of["b"], 2, {1, 5});
  s.ready("a", of["a"], 2, {1, 5});
  s.close("b", of["b"], 2);
  CHECK(s.fold.view.number == 2);
}

TEST_CASE("Fold: a LEAVE takes back the READY said before it, so that no view closes with its device") {
  Script s;
  const auto a = s.hello("a");
  const auto b = s.hello("b");
  s.ready("a", a);
  s.ready("b", b);
  s.leave("b", b);
  CHECK(text_of(why_not_closable(s.fold, 2)) == "1 of 2 devices are ready");
  s.close("a", a);
  CHECK(s.fold.view.number == 0);
  CHECK(ignored(s, Ignored::refused) == 1);
}

TEST_CASE("Fold: a STOP ends the sessions before it, those that form included, and none after it") {
  Script s;
  auto of = s.form({"a", "b"});
  s.ready("a", of["a"], 2);
  const auto stop = s.stop();
  CHECK(s.fold.stopped_at == stop);
  CHECK_FALSE(is_ready(s.fold, s.fold.devices.at("a")));
  CHECK_FALSE(is_open(s.fold, s.fold.devices.at("b")));
  s.ready("a", of["a"], 2);
  s.ready("b", of["b"], 2);
  CHECK(ignored(s, Ignored::stale_session) == 2);
  s.saved("a", of["a"], 1, {1, 9});  // the last checkpoint of the round that ended the group
  s.saved("b", of["b"], 1, {1, 9});
  CHECK(s.fold.committed.stamp == Stamp{1, 9});
  for (const auto* id : {"a", "b"}) {
    of[id] = s.hello(id);
    CHECK(is_open(s.fold, s.fold.devices.at(id)));
  }
  s.ready("a", of["a"], 2, {1, 9});
  s.ready("b", of["b"], 2, {1, 9});
  s.close("a", of["a"], 2);
  CHECK(s.fold.view.number == 2);
}

TEST_CASE("Fold: sessions that follow each other are no swap; two that lived at once are") {
  Script s;
  std::int64_t last = -1;
  for (int life = 0; life < 10; ++life) {  // killed and restarted ten times
    const auto session = s.hello("a");
    CHECK(s.fold.devices.at("a").swaps.empty());
    if (life % 2 == 1) s.leave("a", session);  // or asked to end
    last = session;
  }
  const auto newer = s.hello("a");
  s.leave("a", last);  // it had left before: no effect
  CHECK(s.fold.devices.at("a").swaps.empty());
  const auto newest = s.hello("a");
  s.leave("a", newer, "superseded");
  CHECK(s.fold.devices.at("a").swaps.size() == 1);
  CHECK_FALSE(s.fold.devices.at("a").left);
  s.leave("a", newer, "superseded");  // duplicated
  CHECK(s.fold.devices.at("a").swaps.size() == 1);
  CHECK(s.fold.devices.at("a").contested < newest);
}

TEST_CASE("Fold: three swaps within five minutes of the log's clock stop the newer one, too") {
  Script s;
  std::int64_t session = s.hello("a");
  const auto swap = [&](std::int64_t after_ms) {
    s.time_ms += after_ms;
    const auto older = std::exchange(session, s.hello("a"));
    s.leave("a", older, "superseded");
    return s.fold.devices.at("a").contested > session;
  };
  CHECK_FALSE(swap(1000));
  CHECK_FALSE(swap(3 * minute_ms));
  CHECK_FALSE(swap(3 * minute_ms));  // the first is outdated
  CHECK_FALSE(swap(6 * minute_ms));
  CHECK_FALSE(swap(minute_ms));
  CHECK(swap(minute_ms));
  session = s.hello("a");  // a device started later continues until it is disputed again
  CHECK(s.fold.devices.at("a").contested < session);
  CHECK(swap(1000));
}

TEST_CASE(
    "Fold: a run begins with the first HELLO, and a wish for a new one joins it while nobody has trained") {
  Script s;
  const auto first = s.hello("a", 2);
  CHECK(s.fold.run == Run{1, first, 0});
  s.hello("b", 2, "h", true);
  CHECK(s.fold.run.number == 1);
  CHECK(s.fold.devices.size() == 2);
}

TEST_CASE("Fold: a new run begins when all have ended, with the first HELLO that wants it; the others join") {
  Script s;
  auto of = s.form({"a", "b"});
  s.saved("a", of["a"], 1, {1, 40});
  s.saved("b", of["b"], 1, {1, 40});
  s.stop();
  const auto began = s.hello("b", 2, "h", true);
  CHECK(s.fold.run == Run{2, began, 1});
  CHECK(s.fold.committed == Committed{});
  CHECK(s.fold.view.members.empty());
  CHECK(s.fold.devices.size() == 1);
  const auto a = s.hello("a", 2, "h", true);
  CHECK(s.fold.run.number == 2);
  s.ready("b", began, 2);
  s.ready("a", a, 2, {1, 40}, "old");  // a state of the ended run
  CHECK(ignored(s, Ignored::impossible) == 1);
  CHECK(text_of(why_not_closable(s.fold, 2)) == "1 of 2 devices are ready");
  s.ready("a", a, 2);
  s.close("a", a, 2);
  CHECK(s.fold.view.number == 2);  // numbers continue, so that stamps of both runs never collide
  CHECK(s.fold.view.target == Stamp{});
}

TEST_CASE("Fold: a new run is refused while somebody is in the present one") {
  Script s;
  auto of = s.form({"a", "b"});
  s.leave("b", of["b"]);
  const auto fold = s.fold;
  const auto refused = s.hello("b", 2, "h", true);
  CHECK(ignored(s, Ignored::refused) == 1);
  CHECK(s.fold.run == fold.run);
  CHECK(s.fold.devices == fold.devices);
  CHECK(refused > of["b"]);
  CHECK(new_run_by(s.fold, "b") == NewRun::refused);
  CHECK(
      why_no_new_run(s.fold, "mnist", "b") ==
      "run 1 of job mnist has not ended: a (host host-a, pid 100) is still in it, or was killed before "
      "leaving it. Nothing was changed. End the run with 'rivulet stop --job mnist', then start all devices "
      "with --new-run; or start this one without "
      "it");
  s.leave("a", of["a"]);
  CHECK(new_run_by(s.fold, "b") == NewRun::begins);
}

TEST_CASE("Fold: a device killed in the run that it wanted does not begin another when it comes back") {
  Script s;
  s.form({"a", "b"});
  s.stop();
  auto of = s.form({"a", "b"}, true);
  CHECK(s.fold.run.number == 2);
  CHECK(s.fold.view.number == 2);
  CHECK(new_run_by(s.fold, "a") == NewRun::joins);
  of["a"] = s.hello("a", 2, "h", true);
  CHECK(s.fold.run.number == 2);
  CHECK(new_run_by(s.fold, "c") == NewRun::refused);  // a device outside of it must name the run
  s.leave("a", of["a"]);
  s.leave("b", of["b"]);
  CHECK(new_run_by(s.fold, "a") == NewRun::begins);  // all have ended: the request is a new one
}
