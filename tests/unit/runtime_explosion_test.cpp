// Steps that are finite but too large, and steps that only seem so.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "runtime/train/explosion_watch.h"

using namespace rivulet;
using namespace rivulet::runtime;

namespace {

constexpr double ln10 = 2.302585;

/// Local steps of N rows each, with this loss per row in each.
LocalSteps steps_of(std::size_t rows, const std::vector<double>& losses) {
  LocalSteps own;
  own.begin(TimePoint());
  const std::vector<RowTag> tags(rows);
  for (const double loss : losses)
    own.add({.loss_sum = loss * static_cast<double>(rows), .rows = rows}, tags, 0, TimePoint());
  return own;
}

}  // namespace

TEST_CASE("Explosion: own steps that make the loss many times that of an untrained model are refused") {
  ExplosionWatch watch(10);
  CHECK_FALSE(watch.rejects_delta(1, steps_of(8, {2.3, 2.2, 2.5, 2.1})));
  CHECK(watch.rejects_delta(1, steps_of(8, {2.3, 2.9, 20, 60})));
  watch.agreed(0.05 * 1000, 1000);
  CHECK_FALSE(watch.rejects_delta(1, steps_of(8, {0.05, 0.04, 4, 6})));
  CHECK(watch.rejects_delta(1, steps_of(16, {0.05, 0.04, 12, 14})));
}

TEST_CASE("Explosion: a stream that changes is not an explosion, nor is a row that is far off") {
  ExplosionWatch watch(10);
  watch.agreed(0.05 * 1000, 1000);
  // A model that was confident about labels that have changed: its loss is high from the first step on, and
  // falls.
  CHECK_FALSE(watch.rejects_delta(1, steps_of(16, {18, 16, 14, 12})));
  CHECK_FALSE(watch.rejects_delta(1, steps_of(1, {0.01, 25})));
  CHECK_FALSE(watch.rejects_delta(1, steps_of(64, {14})));  // a single step has no reference
}

TEST_CASE(
    "Explosion: of targets that are any numbers the highest loss lately is the measure, once it is known") {
  ExplosionWatch watch(0);
  CHECK_FALSE(watch.rejects_delta(1, steps_of(16, {1, 1, 1e6, 1e9})));
  for (int i = 0; i < 30; ++i) watch.agreed((i == 25 ? 50 : 1) * 100.0, 100);
  CHECK_FALSE(watch.rejects_delta(1, steps_of(16, {1, 1, 500, 600})));
  CHECK(watch.rejects_delta(1, steps_of(16, {1, 1, 1e4, 1e5})));
}

TEST_CASE(
    "Explosion: what goes a thousand times as far as the parameters are large is refused, step or movement") {
  ExplosionWatch watch(0);
  const LocalSteps steps = steps_of(8, {1, 1});
  CHECK_FALSE(watch.refuses_step(1e30));  // no reference yet
  watch.state_at(10);
  CHECK_FALSE(watch.refuses_step(9000));
  CHECK(watch.refuses_step(11'000));
  CHECK(watch.rejects_delta(11'000, steps));
  CHECK_FALSE(watch.rejects_delta(9000, steps));
  CHECK_FALSE(watch.rejects_delta(100'000, steps));  // as far as those of other devices
}

TEST_CASE("Explosion: what is refused again and again is how the rows are, and is taken in the end") {
  ExplosionWatch watch(10);
  watch.state_at(1);
  const LocalSteps high = steps_of(64, {0.1, 0.1, 100 * ln10, 100 * ln10});
  int steps = 0;
  int deltas = 0;
  while (watch.refuses_step(1e5) && steps < 1000) ++steps;
  while (watch.rejects_delta(1, high) && deltas < 1000) ++deltas;
  CHECK(steps == 32);              // four limits, each four times the one before
  CHECK(deltas == 24);             // three
  CHECK(watch.refuses_step(1e5));  // from the start
  CHECK(watch.rejects_delta(1, high));
}
