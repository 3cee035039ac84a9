#include "runtime/train/guess_watch.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace rivulet;
using namespace rivulet::runtime;

namespace {

using Targets = GuessWatch::Targets;

/// Batches with one mean loss; targets cycle through a list.
struct Watched {
  GuessWatch watch;
  std::vector<float> targets;
  std::size_t next = 0;

  Watched(Targets kind, std::size_t classes, std::vector<float> values)
      : watch(kind, classes), targets(std::move(values)) {}
  void batch(double loss, std::size_t rows = 125, bool finite = true) {
    std::vector<float> now;
    for (std::size_t i = 0; i < rows; ++i) now.push_back(targets[next++ % targets.size()]);
    const std::vector<float> features(rows);
    const std::vector<RowTag> tags(rows);
    devices::StepReport report;
    report.rows = rows;
    report.loss_sum = loss * static_cast<double>(rows);
    report.finite = finite;
    watch.computed(report, {features, now, rows, tags}, rows, finite);
  }
  void batches(std::size_t count, double loss, std::size_t rows = 125) {
    for (std::size_t i = 0; i < count; ++i) batch(loss, rows);
  }
};

}  // namespace

TEST_CASE("Guess: a model is good beside a guess, or has diverged, after a thousand rows and not before") {
  Watched it(Targets::classes, 2, {0, 1});
  it.batches(7, 0.1);
  CHECK_FALSE(it.watch.good());
  CHECK_FALSE(it.watch.sound());
  it.batch(0.1);
  CHECK(it.watch.good());
  CHECK(it.watch.sound());
  CHECK_FALSE(it.watch.diverged());
  it.batches(15, 7.5);  // ten times ln 2 is 6.93
  CHECK_FALSE(it.watch.diverged());
  it.batch(7.5);
  CHECK(it.watch.diverged());
  CHECK_FALSE(it.watch.good());
  CHECK_FALSE(it.watch.sound());
  it.batches(8, 6.5);  // neither
  CHECK_FALSE(it.watch.diverged());
  CHECK_FALSE(it.watch.good());
}

TEST_CASE("Guess: a batch of absurd rows decides nothing, however absurd, and however large") {
  for (const std::size_t rows : {125U, 2000U}) {
    Watched it(Targets::classes, 2, {0, 1});
    for (int block = 0; block < 3; ++block) {
      it.batch(1e9, rows);
      it.batches(7, 0.1, rows);
      CHECK_FALSE(it.watch.diverged());
    }
    it.batches(20, 0.1, rows);
    CHECK_FALSE(it.watch.diverged());
    CHECK(it.watch.good());
  }
}

TEST_CASE("Guess: what a device that sees one class errs on is compared with a model that knows nothing") {
  Watched one(Targets::classes, 10, {3});
  one.batches(8, 2.3);  // at the start
  CHECK(one.watch.good());
  one.batches(8, 6.5);
  CHECK_FALSE(one.watch.diverged());
  one.batches(16, 7.0);  // 3 ln 10 is 6.91
  CHECK(one.watch.diverged());
  Watched rare(Targets::classes, 2, std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  rare.batches(8, 3.0);  // of a guess: 0.325, of zeros: 0.693
  CHECK_FALSE(rare.watch.diverged());
  rare.batches(16, 3.4);
  CHECK(rare.watch.diverged());
}

TEST_CASE("Guess: of numbers it is their mean, or in variances 1") {
  Watched numbers(Targets::numbers, 0, {999, 1001});  // variance 1, squares 1e6
  numbers.batches(8, 2.9e6);
  CHECK_FALSE(numbers.watch.diverged());
  numbers.batches(16, 3.1e6);
  CHECK(numbers.watch.diverged());
  Watched centred(Targets::numbers, 0, {-1, 1});
  centred.batches(8, 1.9);
  CHECK(centred.watch.good());
  centred.batches(16, 10.5);
  CHECK(centred.watch.diverged());
  Watched normalized(Targets::normalized, 0, {5});
  normalized.batches(8, 1.9);
  CHECK(normalized.watch.good());
  normalized.batches(8, 9.9);
  CHECK_FALSE(normalized.watch.diverged());
  normalized.batches(16, 10.1);
  CHECK(normalized.watch.diverged());
  Watched still(Targets::numbers, 0, {0});  // no reference
  still.batches(20, 1e9);
  CHECK_FALSE(still.watch.diverged());
  CHECK_FALSE(still.watch.good());
}

TEST_CASE("Guess: batches that are not finite are as bad as can be, and few of them decide nothing") {
  Watched it(Targets::classes, 2, {0, 1});
  it.batch(0, 10, false);
  it.batch(std::numeric_limits<double>::infinity(), 10);
  it.batches(20, 0.1);
  CHECK_FALSE(it.watch.diverged());
  CHECK(it.watch.good());
  for (int i = 0; i < 24; ++i) it.batch(0, 125, false);
  CHECK(it.watch.diverged());
  it.watch.begin();
  CHECK_FALSE(it.watch.diverged());
  CHECK_FALSE(it.watch.good());
}

TEST_CASE(
    "Guess: a loss that is high at once and falls is what a healthy model has of rows that nobody knew") {
  Watched it(Targets::classes, 2, {0, 1});
  it.batches(8, 0.1);
  it.batches(8, 15);
  it.batches(8, 8);
  CHECK_FALSE(it.watch.diverged());
  it.batches(8, 7.1);
  CHECK_FALSE(it.watch.diverged());
  it.batches(8, 7.0);  // it has stopped falling
  CHECK(it.watch.diverged());
}

TEST_CASE("Guess: a loss that is far off and halves is what a healthy model has that began badly") {
  Watched it(Targets::classes, 2, {0, 1});
  for (const double loss : {140.0, 69.0, 34.0, 16.0, 7.5}) {
    it.batches(8, loss);
    CHECK_FALSE(it.watch.diverged());
  }
  it.batches(8, 140.0);
  CHECK(it.watch.diverged());
  it.batches(8, 71.0);  // far above, it must halve
  CHECK(it.watch.diverged());
}

TEST_CASE("Guess: a model that nothing can be trained into has diverged, however good it is") {
  Watched it(Targets::classes, 2, {0, 1});
  it.batches(8, 0.1);
  for (int i = 0; i < 63; ++i) it.watch.refused(100);
  CHECK_FALSE(it.watch.diverged());
  CHECK(it.watch.sound());
  it.watch.refused(100);
  CHECK(it.watch.diverged());
  CHECK_FALSE(it.watch.sound());
  it.watch.taken();
  CHECK_FALSE(it.watch.diverged());
  for (int i = 0; i < 199; ++i) it.watch.refused(10);
  CHECK_FALSE(it.watch.diverged());  // few rows
  it.watch.refused(10);
  CHECK(it.watch.diverged());
  it.watch.begin();
  CHECK_FALSE(it.watch.diverged());
}

TEST_CASE("Guess: after a new beginning rows that came before count for nothing") {
  Watched it(Targets::classes, 2, {0, 1});
  it.batches(7, 100);
  it.watch.begin();
  it.batch(100);
  CHECK_FALSE(it.watch.diverged());
  it.batches(7, 0.1);
  CHECK_FALSE(it.watch.diverged());
}

TEST_CASE("Guess: a trial that begins does not put off what bad rows decide") {
  Watched it(Targets::classes, 2, {0, 1});
  it.batches(12, 100);
  it.watch.begin_trial();
  CHECK_FALSE(it.watch.diverged());
  it.batches(4, 100);
  CHECK(it.watch.diverged());
  it.batches(4, 0.1);
  CHECK_FALSE(it.watch.good());  // eight batches of the trial, half of them bad
}

TEST_CASE("Guess: what came before a trial makes nothing good") {
  Watched it(Targets::classes, 2, {0, 1});
  it.batches(8, 0.1);
  CHECK(it.watch.good());
  it.watch.begin_trial();
  CHECK_FALSE(it.watch.good());
  it.batches(7, 0.1);
  CHECK_FALSE(it.watch.good());
  it.batch(0.1);
  CHECK(it.watch.good());
}
