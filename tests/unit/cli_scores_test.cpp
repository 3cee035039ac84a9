#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "runtime/cli/scores.h"

using namespace rivulet::runtime::cli;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Ten rows: "ok" 6, five of them recognized; "fault" 4, three recognized, the fourth predicted as "ok"; no
/// prediction of "off".
ClassScores example() {
  ClassScores scores({"ok", "fault", "off"});
  const std::vector<int> actual = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1};
  const std::vector<int> said = {0, 0, 0, 0, 0, 1, 1, 1, 1, 0};
  for (std::size_t i = 0; i < actual.size(); ++i) {
    std::vector<float> outputs(3, -1);
    outputs[static_cast<std::size_t>(said[i])] = 0.5F;
    scores.add(outputs, std::vector<float>{static_cast<float>(actual[i])});
  }
  return scores;
}

}  // namespace

TEST_CASE("Scores: accuracy, precision and recall of each class, and who is taken for whom") {
  const auto scores = example();
  CHECK(scores.rows() == 10);
  CHECK(scores.accuracy() == doctest::Approx(0.8));
  CHECK(*scores.of(0).precision() == doctest::Approx(5.0 / 6));
  CHECK(*scores.of(0).recall() == doctest::Approx(5.0 / 6));
  CHECK(*scores.of(1).precision() == doctest::Approx(3.0 / 4));
  CHECK(*scores.of(1).recall() == doctest::Approx(3.0 / 4));
  CHECK_FALSE(scores.of(2).precision());
  CHECK_FALSE(scores.of(2).recall());
  CHECK(scores.confused(0, 1) == 1);
  CHECK(scores.confused(1, 0) == 1);
  CHECK(scores.confused(0, 0) == 5);
  CHECK(scores.confused(2, 2) == 0);
  CHECK(scores.majority() == 0);
}

TEST_CASE("Scores: precision is of what is predicted, recall of what is there") {
  ClassScores scores({"a", "b"});
  // Three rows of b, one of a; the model always predicts a.
  scores.add(std::vector<float>{2, 1, 2, 1, 2, 1, 2, 1}, std::vector<float>{1, 1, 1, 0});
  CHECK(*scores.of(0).precision() == doctest::Approx(0.25));
  CHECK(*scores.of(0).recall() == doctest::Approx(1));
  CHECK_FALSE(scores.of(1).precision());
  CHECK(*scores.of(1).recall() == doctest::Approx(0));
  CHECK(scores.majority() == 1);
  CHECK(scores.confused(1, 0) == 3);
}

TEST_CASE("Scores: a person reads names, shares and the confusion; what never comes is left out") {
  const auto text = describe(example());
  CAPTURE(text);
  CHECK(text ==
        "baseline (majority class): ok, 60.00 %\n"
        "  class       rows  predicted  precision   recall\n"
        "  ok             6          6     83.3 %   83.3 %\n"
        "  fault          4          4     75.0 %   75.0 %\n"
        "confusion matrix: rows are labels, columns are predictions\n"
        "              ok   fault\n"
        "  ok           5       1\n"
        "  fault        1       3\n");
}

TEST_CASE("Scores: of many classes those of most rows are listed, and no matrix is drawn") {
  std::vector<std::string> names;
  for (int i = 0; i < 60; ++i) names.push_back("class-" + std::to_string(i));
  ClassScores scores(names);
  for (std::size_t i = 0; i < 60; ++i) {
    std::vector<float> outputs(60, 0);
    outputs[i] = 1;
    for (std::size_t n = 0; n < (i < 20 ? 1 : 2); ++n)
      scores.add(outputs, std::vector<float>{static_cast<float>(i)});
  }
  const auto text = describe(scores);
  CHECK(contains(text, "class-20 "));
  CHECK_FALSE(contains(text, "class-19 "));
  CHECK(contains(text, "--json lists the smaller classes"));
  CHECK_FALSE(contains(text, "confusion matrix:"));
}

TEST_CASE("Scores: of a regression the error and R2, beside the mean's") {
  RegressionScores scores;
  scores.add(std::vector<float>{1, 2, 5}, std::vector<float>{1, 3, 2});
  CHECK(scores.mean_absolute_error() == doctest::Approx((0 + 1 + 3) / 3.0));
  CHECK(scores.mean() == doctest::Approx(2));
  CHECK(scores.mean_absolute_error_of_mean() == doctest::Approx(2.0 / 3));
  CHECK(*scores.r2() == doctest::Approx(1 - 10.0 / 2));
  CHECK(describe(scores) ==
        "mean absolute error 1.333, R2 -4.0000\n"
        "baseline (the mean, 2): mean absolute error 0.6667, R2 0\n");
  RegressionScores still;
  still.add(std::vector<float>{1, 2}, std::vector<float>{7, 7});
  CHECK_FALSE(still.r2());
  CHECK(contains(describe(still), "unknown: all targets are equal"));
}
