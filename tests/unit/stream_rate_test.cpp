#include <doctest/doctest.h>

#include "stream/rate.h"

using namespace rivulet;
using namespace rivulet::stream;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {
TimePoint at(double s) {
  return TimePoint(seconds(1000)) + from_seconds(s);
}
}  // namespace

TEST_CASE("Rate: nothing arrived is zero") {
  RateEstimate rate;
  CHECK(rate.rows_per_second(at(0)) == 0);
  CHECK(rate.rows_per_second(at(100)) == 0);
}

TEST_CASE("Rate: a steady stream reads as its rate, in the first window too") {
  for (const double per_second : {5.0, 100.0, 800.0, 20'000.0}) {
    RateEstimate rate;
    CAPTURE(per_second);
    double next = 0;
    double shown = 0.7;
    while (next < 7) {
      rate.arrived(1, at(next));
      next += 1 / per_second;
      if (next < shown) continue;
      CHECK(rate.rows_per_second(at(next)) == doctest::Approx(per_second).epsilon(0.05 + 1.5 / per_second));
      shown += 0.33;
    }
  }
}

TEST_CASE("Rate: a window after the last row it is exactly zero, and not before") {
  RateEstimate rate(seconds(2));
  for (int i = 0; i < 100; ++i) rate.arrived(10, at(0.01 * i));
  CHECK(rate.rows_per_second(at(2.8)) > 0);
  CHECK(rate.rows_per_second(at(0.99 + 2.0)) == 0);
  CHECK(rate.rows_per_second(at(1e6)) == 0);
}

TEST_CASE("Rate: a change of rate is seen within a window") {
  RateEstimate rate(seconds(2));
  double t = 0;
  for (; t < 5; t += 0.01) rate.arrived(8, at(t));
  for (; t < 7.1; t += 0.01) rate.arrived(1, at(t));
  CHECK(rate.rows_per_second(at(t)) == doctest::Approx(100).epsilon(0.05));
}

TEST_CASE("Rate: a stream that wakes after silence is measured from its waking") {
  RateEstimate rate(seconds(2));
  for (int i = 0; i < 100; ++i) rate.arrived(1, at(0.01 * i));
  for (int i = 0; i < 100; ++i) rate.arrived(1, at(50 + 0.01 * i));
  CHECK(rate.rows_per_second(at(51)) == doctest::Approx(100).epsilon(0.05));
}

TEST_CASE("Rate: time that seems to go back changes nothing") {
  RateEstimate rate(seconds(2));
  rate.arrived(100, at(1));
  rate.arrived(100, at(0.2));
  CHECK(rate.rows_per_second(at(2)) == doctest::Approx(200));  // 200 rows in the second since the first
  // Before the first row there is no interval to divide by: uses the minimum, a tenth of a second.
  CHECK(rate.rows_per_second(at(0)) == doctest::Approx(2000));
  rate.arrived(100, at(2.5));
  CHECK(rate.rows_per_second(at(2.5)) == doctest::Approx(200));  // 300 rows in one and a half
}

TEST_CASE("Growth of a log: what was there at first does not count, nor how far looks are apart") {
  GrowthEstimate growth;
  TimePoint now{};
  growth.reached(10'000, now);
  CHECK(growth.per_second(now) == 0);
  std::int64_t end = 10'000;
  for (int i = 0; i < 50; ++i) growth.reached(end += 30, now += std::chrono::milliseconds(100));
  CHECK(growth.per_second(now) == doctest::Approx(300));
  for (int i = 0; i < 30; ++i) growth.reached(end, now += std::chrono::milliseconds(100));  // paused
  CHECK(growth.per_second(now) == doctest::Approx(300));
  growth.reached(end += 900, now);
  CHECK(growth.per_second(now) == doctest::Approx(300));
  for (int i = 0; i < 20; ++i) growth.reached(end += 100, now += std::chrono::seconds(1));
  CHECK(growth.per_second(now) == doctest::Approx(100).epsilon(0.05));
  growth.reached(end, now += std::chrono::seconds(60));
  CHECK(growth.per_second(now) < 0.02);
}
