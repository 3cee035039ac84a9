// Scores of the model on a device's own rows: by class, by value, over a window.
#include "runtime/train/live_scores.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/clock.h"
#include "tests/support/counting_metrics.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

struct Scored {
  explicit Scored(std::vector<std::string> classes = {"ok", "fault"}, std::uint64_t window = 1600)
      : classification(!classes.empty()),
        scores({clock, status, metrics, classification, std::move(classes), window}) {}
  /// The first `counted` rows are the device's own; default: all.
  void batch(const std::vector<float>& targets, const std::vector<float>& answers, double loss_sum = 0,
             std::size_t outputs = 1, std::size_t copies = 0) {
    const std::size_t rows = targets.size() / outputs;
    const std::size_t counted = rows - copies;
    devices::StepReport report{.loss_sum = loss_sum, .rows = counted};
    for (std::size_t i = 0; classification && i < counted; ++i)
      report.correct += targets[i] == answers[i] ? 1 : 0;
    report.answers = answers;
    scores.computed(report, {{}, targets, rows, {}}, counted);
  }
  /// 1 % faults; the model recognizes 8 of 10, and predicts a fault for as many other rows.
  void hundred_faults() {
    for (int i = 0; i < 10; ++i) {
      std::vector<float> targets(100, 0);
      std::vector<float> answers(100, 0);
      targets[50] = 1;
      answers[50] = i < 8 ? 1 : 0;
      answers[20] = i < 8 ? 1 : 0;
      batch(targets, answers);
    }
    scores.show();
  }
  [[nodiscard]] OwnScores now() {
    scores.show();
    return status.own_scores();
  }

  VirtualClock clock;
  NodeStatus status;
  CountingMetrics metrics;
  const bool classification;
  LiveScores scores;
};

}  // namespace

TEST_CASE("Live scores: recall and precision of a rare class, beside an accuracy that hides them") {
  Scored it;
  it.hundred_faults();
  const OwnScores now = it.status.own_scores();
  CHECK(now.rows == 1000);
  CHECK(now.accuracy == doctest::Approx(0.99));
  CHECK(now.largest_share == doctest::Approx(0.99));
  CHECK(now.largest_class == "ok");
  REQUIRE(now.classes.size() == 2);
  CHECK(now.names[1] == "fault");
  CHECK(now.classes[1].recall() == doctest::Approx(0.8));
  CHECK(now.classes[1].precision() == doctest::Approx(0.5));
  CHECK(it.metrics["live_class_recall/fault"] == doctest::Approx(0.8));
  CHECK(it.metrics["live_class_precision/fault"] == doctest::Approx(0.5));
  CHECK(it.metrics["live_largest_class_ratio"] == doctest::Approx(0.99));
  CHECK(it.metrics["eval_score/own_prequential_accuracy"] == doctest::Approx(0.99));
}

TEST_CASE("Live scores: what was never measured is not a number") {
  Scored it;
  CHECK(std::isnan(it.metrics["live_class_recall/fault"]));
  CHECK(std::isnan(it.metrics["live_largest_class_ratio"]));
  it.batch({0, 0, 0, 0}, {0, 0, 0, 0});
  CHECK(it.metrics["live_class_recall/ok"] == 1);
  CHECK(std::isnan(it.metrics["live_class_recall/fault"]));
  CHECK(std::isnan(it.metrics["live_class_precision/fault"]));
}

TEST_CASE("Live scores: of another model nothing is known of the one before") {
  Scored it;
  it.hundred_faults();
  it.scores.begin();
  CHECK(it.status.own_scores().rows == 0);
  CHECK(it.status.own_scores().classes.empty());
  CHECK(std::isnan(it.metrics["live_class_recall/fault"]));
  CHECK(std::isnan(it.metrics["live_class_precision/ok"]));
  CHECK(std::isnan(it.metrics["live_largest_class_ratio"]));
  CHECK(std::isnan(it.metrics["eval_score/own_prequential_accuracy"]));
  it.batch({1, 1, 1, 0}, {1, 1, 0, 0});
  CHECK(it.now().rows == 4);
  CHECK(it.now().classes[1] == ClassCounts{3, 2, 2});
  CHECK(it.metrics["live_largest_class_ratio"] == 0.75);
}

TEST_CASE("Live scores: copies of peers' rows are none of this device's") {
  Scored it;
  it.batch({0, 0, 1, 1, 1}, {0, 1, 0, 0, 0}, 0, 1, 3);
  CHECK(it.now().rows == 2);
  CHECK(it.now().classes[1].rows == 0);
  CHECK(it.now().classes[0].predicted == 1);
}

TEST_CASE("Live scores: what lies behind the window is forgotten") {
  Scored it({"ok", "fault"}, 160);  // blocks of ten rows
  for (int i = 0; i < 30; ++i) it.batch(std::vector<float>(10, 1), std::vector<float>(10, 0), 20);
  for (int i = 0; i < 16; ++i) it.batch(std::vector<float>(10, 0), std::vector<float>(10, 0), 10);
  CHECK(it.now().rows == 160);
  CHECK(it.now().accuracy == 1);
  CHECK(it.now().loss == doctest::Approx(1));
  CHECK(it.now().classes[1].rows == 0);
  CHECK(it.now().classes[0].rows == 160);
}

TEST_CASE("Live scores: a loss that is not finite leaves with its rows") {
  Scored it({"ok", "fault"}, 160);
  it.batch(std::vector<float>(10, 0), std::vector<float>(10, 0), std::numeric_limits<double>::quiet_NaN());
  CHECK(std::isinf(it.now().loss));
  for (int i = 0; i < 16; ++i) it.batch(std::vector<float>(10, 0), std::vector<float>(10, 0), 5);
  CHECK(it.now().loss == doctest::Approx(0.5));
}

TEST_CASE("Live scores: of numbers the error is told in their unit, also where they are large") {
  Scored it(std::vector<std::string>{}, 160);
  std::vector<float> targets;
  std::vector<float> answers;
  for (int i = 0; i < 160; ++i) {
    targets.push_back(static_cast<float>(100'000 + (i % 2 == 0 ? 4 : -4)));
    answers.push_back(targets.back() + static_cast<float>(i % 4 < 2 ? 2 : -2));
    if (i % 10 != 9) continue;
    it.batch(targets, answers, 3);
    targets.clear();
    answers.clear();
  }
  const OwnScores now = it.now();
  CHECK_FALSE(now.accuracy);
  CHECK(now.loss == doctest::Approx(0.3));
  CHECK(now.mean_absolute_error == doctest::Approx(2));
  CHECK(now.r2 == doctest::Approx(0.75));  // 1 - 4 / 16
  CHECK(it.metrics["eval_score/own_mean_absolute_error"] == doctest::Approx(2));
  CHECK(it.metrics["eval_score/own_r2"] == doctest::Approx(0.75));
}

TEST_CASE("Live scores: each output has a mean of its own") {
  Scored it(std::vector<std::string>{});
  it.batch({1, 100, 3, 104}, {1, 101, 3, 103}, 0, 2);  // squares 2 of 2 + 8
  CHECK(it.now().mean_absolute_error == doctest::Approx(0.5));
  CHECK(it.now().r2 == doctest::Approx(0.8));
}

TEST_CASE("Live scores: of equal targets there is no R2") {
  Scored it(std::vector<std::string>{});
  it.batch({5, 5}, {6, 5});
  CHECK(it.now().mean_absolute_error == doctest::Approx(0.5));
  CHECK_FALSE(it.now().r2);
}

TEST_CASE("Live scores: a trainer that does not tell its answers has an accuracy alone") {
  Scored it;
  devices::StepReport report{.loss_sum = 2, .correct = 3, .rows = 4};
  const std::vector<float> targets(4, 0);
  it.scores.computed(report, {{}, targets, 4, {}}, 4);
  CHECK(it.now().accuracy == 0.75);
  CHECK(it.now().classes.empty());
  CHECK_FALSE(it.now().largest_share);
}

TEST_CASE("Live scores: of many classes the first are shown, and the largest is one of all") {
  std::vector<std::string> names;
  for (int c = 0; c < 2000; ++c) names.push_back(std::to_string(c));
  Scored some(std::vector<std::string>(names.begin(), names.begin() + 100));
  some.batch({90, 90, 3}, {90, 3, 3});
  CHECK(some.now().classes.size() == 64);
  CHECK(some.now().largest_class == "90");
  CHECK(some.now().classes[3].precision() == 0.5);
  Scored many(names);
  many.batch({1999, 1999, 3}, {1999, 3, 3});
  CHECK(many.now().accuracy == doctest::Approx(2.0 / 3));
  CHECK_FALSE(many.now().largest_share);  // unknown
}

TEST_CASE("Live scores: they are shown at most ten times a second, and the last ones by the end of a round") {
  Scored it;
  it.batch({0}, {0});
  CHECK(it.status.own_scores().rows == 1);
  it.batch({0}, {0});
  CHECK(it.status.own_scores().rows == 1);
  it.clock.advance_by(std::chrono::milliseconds(100));
  it.batch({0}, {0});
  CHECK(it.status.own_scores().rows == 3);
  it.batch({0}, {0});
  it.scores.show();
  CHECK(it.status.own_scores().rows == 4);
}
