// Wakes the connection thread before its tick. Rung before it waits: no test depends on time.
#include "sync/transport/gloo/alarm.h"

#include <doctest/doctest.h>

#include "core/clock.h"

using namespace rivulet;
using rivulet::sync::gloo_door::Alarm;

TEST_CASE("Alarm: what has arrived is handed out once, and the wait goes on to its end") {
  const RealClock clock;
  Alarm alarm(clock);
  int handed_out = 0;
  alarm.arrived();
  CHECK(alarm.wait(clock.now() + std::chrono::milliseconds(1), [&] { ++handed_out; }));
  CHECK(handed_out == 1);
  CHECK(alarm.wait(clock.now(), [&] { ++handed_out; }));
  CHECK(handed_out == 1);
}

TEST_CASE("Alarm: a broken connection ends the wait, with the first account of it, once") {
  const RealClock clock;
  Alarm alarm(clock);
  alarm.broke(2, "reset");
  alarm.broke(2, "closed");
  CHECK(alarm.wait(clock.now() + std::chrono::hours(1), [] {}));
  const auto breaks = alarm.take_breaks();
  REQUIRE(breaks.size() == 1);
  CHECK(breaks.at(2) == "reset");
  CHECK(alarm.take_breaks().empty());
}

TEST_CASE("Alarm: stopping it ends this wait and every later one") {
  const RealClock clock;
  Alarm alarm(clock);
  alarm.stop();
  CHECK_FALSE(alarm.wait(clock.now() + std::chrono::hours(1), [] {}));
  CHECK_FALSE(alarm.wait(clock.now() + std::chrono::hours(1), [] {}));
}
