// Changes of a device's stream: features that shift or become constant, outliers, a rising loss.
#include "runtime/train/stream_watch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/clock.h"
#include "core/rng.h"
#include "tests/support/counting_metrics.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

struct WatchLines final : Logger {
  void write(Level, std::string_view message, const Fields& fields) override {
    std::string line(message);
    for (const auto& field : fields) line += " " + std::string(field.first) + "=" + field.second;
    all.push_back(line);
  }
  [[nodiscard]] long count(std::string_view part) const {
    return std::count_if(all.begin(), all.end(),
                         [&](const std::string& line) { return line.find(part) != std::string::npos; });
  }
  std::vector<std::string> all;
};

/// A feature that gets one row at a time.
struct Fed {
  void rows(int n, double mean, double deviation) {
    for (int i = 0; i < n; ++i) one(static_cast<float>(mean + deviation * rng.normal()));
  }
  void one(float x) { drift.add(&x, 1, 1); }
  FeatureDrift drift{1};
  Rng rng{3};
};

/// Two features, classes or numbers, batches of ten rows.
struct Watched {
  explicit Watched(bool classification = true)
      : watch({.clock = clock,
               .status = status,
               .metrics = metrics,
               .log = log,
               .classification = classification,
               .features = {"temp", "rms"}}) {
    status.keep_history();
  }
  void batch(double wrong, double temp = 20, std::vector<std::uint32_t> beyond = {0, 0}) {
    constexpr std::size_t rows = 10;
    std::vector<float> features;
    for (std::size_t i = 0; i < rows; ++i)
      features.insert(features.end(), {static_cast<float>(stuck ? temp : temp + rng.normal()),
                                       static_cast<float>(rng.normal())});
    devices::StepReport report{.rows = rows};
    owed += wrong * rows;
    const auto now = static_cast<std::uint64_t>(owed);
    owed -= static_cast<double>(now);
    report.correct = rows - now;
    report.loss_sum = wrong * rows;
    report.beyond = beyond;
    watch.computed(report, {features, {}, rows, {}}, rows);
  }
  void batches(int n, double wrong, double temp = 20) {
    for (int i = 0; i < n; ++i) batch(wrong, temp);
  }

  VirtualClock clock;
  NodeStatus status;
  CountingMetrics metrics;
  WatchLines log;
  StreamWatch watch;
  Rng rng{5};
  double owed = 0;
  bool stuck = false;  ///< temp is constant
};

}  // namespace

TEST_CASE("Stream watch: a feature that moves is seen, and is usual again after a while") {
  Fed fed;
  fed.rows(5000, 20, 0.5);
  CHECK(fed.drift.distance(0) < 0.5);
  CHECK_FALSE(fed.drift.moved(0));
  fed.rows(400, 35, 3);
  CHECK(fed.drift.moved(0));
  CHECK(fed.drift.distance(0) > 3);
  CHECK(fed.drift.describe(0).starts_with("3"));
  fed.rows(40'000, 35, 3);
  CHECK_FALSE(fed.drift.moved(0));
  CHECK(fed.drift.distance(0) < 0.5);
}

TEST_CASE("Stream watch: outliers, a slow wave and a beginning are no movement") {
  Fed outliers;
  outliers.rows(5000, 20, 0.5);
  bool moved = false;
  for (int i = 0; i < 5000; ++i) {
    i % 100 == 7 ? outliers.one(65'535) : outliers.rows(1, 20, 0.5);
    moved = moved || outliers.drift.moved(0);
  }
  CHECK_FALSE(moved);
  Fed wave;
  for (int i = 0; i < 40'000; ++i) {
    wave.one(static_cast<float>(20 + std::sin(i / 500.0) + 0.1 * wave.rng.normal()));
    moved = moved || wave.drift.moved(0);
  }
  CHECK_FALSE(moved);
  Fed first;
  first.rows(100, 20, 0.5);
  first.rows(100, 50, 0.5);
  CHECK_FALSE(first.drift.moved(0));
  CHECK(first.drift.distance(0) == 0);
}

TEST_CASE("Stream watch: neither an absurd first value nor values that begin late hide a movement") {
  Fed absurd;
  absurd.one(1e18F);
  absurd.rows(5000, 20, 0.5);
  CHECK_FALSE(absurd.drift.moved(0));
  absurd.rows(400, 35, 3);
  CHECK(absurd.drift.moved(0));
  Fed late;
  for (int i = 0; i < 200; ++i) late.one(std::numeric_limits<float>::quiet_NaN());
  late.one(1e18F);
  late.rows(5000, 1e6, 20);
  CHECK_FALSE(late.drift.moved(0));
  late.rows(400, 1e6 + 200, 20);
  CHECK(late.drift.moved(0));
}

TEST_CASE("Stream watch: a feature is stuck if it varied, and has one value for longer than ever") {
  Fed fed;
  fed.rows(2000, 20, 0.5);
  for (int i = 0; i < 499; ++i) fed.one(21);
  CHECK_FALSE(fed.drift.stuck(0));
  fed.one(21);
  CHECK(fed.drift.stuck(0));
  fed.one(22);
  CHECK_FALSE(fed.drift.stuck(0));
  Fed flag;  // constant for 400 rows at a time
  for (int i = 0; i < 16'400; ++i) flag.one(i / 400 % 2 == 0 ? 0 : 1);
  for (int i = 0; i < 1000; ++i) flag.one(0);
  CHECK_FALSE(flag.drift.stuck(0));
  for (int i = 0; i < 300; ++i) flag.one(0);
  CHECK(flag.drift.stuck(0));
  Fed constant;
  for (int i = 0; i < 5000; ++i) constant.one(7);
  CHECK_FALSE(constant.drift.stuck(0));
  Fed at_once;
  const std::vector<float> same(128, 7);
  for (int i = 0; i < 40; ++i) at_once.drift.add(same.data(), same.size(), 1);
  CHECK_FALSE(at_once.drift.stuck(0));
}

TEST_CASE("Stream watch: missing values are none: neither others, nor the same, nor in any mean") {
  constexpr float missing = std::numeric_limits<float>::quiet_NaN();
  Fed fed;
  fed.rows(2000, 20, 0.5);
  for (int i = 0; i < 1000; ++i) fed.one(missing);
  CHECK_FALSE(fed.drift.stuck(0));
  CHECK_FALSE(fed.drift.moved(0));
  for (int i = 0; i < 500; ++i) {
    fed.one(21);
    fed.one(missing);
  }
  CHECK(fed.drift.stuck(0));
  Fed moves;
  moves.rows(3000, 20, 0.5);
  moves.one(missing);
  moves.rows(400, 35, 3);
  CHECK(moves.drift.moved(0));
}

TEST_CASE("Stream watch: a flag that is seldom up is not stuck while it is down") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    INFO(seed);
    Fed flag;
    flag.rng = Rng(seed);
    bool stuck = false;
    for (int i = 0; i < 50'000; ++i) {
      flag.one(flag.rng.uniform() < 0.001 ? 1 : 0);
      stuck = stuck || flag.drift.stuck(0);
    }
    CHECK_FALSE(stuck);
  }
}

TEST_CASE("Stream watch: a rise of the errors is a change, told once; a fall is none, nor a beginning") {
  Watched it;
  it.batches(100, 0.5);  // it learns
  it.batches(200, 0.05);
  CHECK_FALSE(it.watch.report_change());
  CHECK(it.metrics["stream_changes_total"] == 0);
  it.batches(30, 0.6);
  CHECK(it.watch.report_change());
  CHECK(it.watch.report_change());  // until the group has synchronized a step with it
  it.watch.heed_change();
  CHECK_FALSE(it.watch.report_change());
  CHECK(it.metrics["stream_changes_total"] >= 1);
  CHECK(it.status.stream_findings().loss_rose.starts_with("the model's error rate on"));
  CHECK(it.status.history()->marks().at(0).phrase.starts_with("the model's error rate on"));
  it.batches(300, 0.05);
  it.clock.advance_by(std::chrono::minutes(11));
  it.watch.pass();  // no more rows arrive
  CHECK(it.status.stream_findings().loss_rose.empty());
  Watched begins;
  begins.batches(15, 0.05);
  begins.batches(20, 0.9);
  CHECK_FALSE(begins.watch.report_change());
}

TEST_CASE("Stream watch: a change that happens while the group agrees is told with the next facts") {
  Watched it;
  it.batches(200, 0.05);
  CHECK_FALSE(it.watch.report_change());
  it.batches(30, 0.6);
  it.watch.heed_change();
  CHECK(it.watch.report_change());
}

TEST_CASE("Stream watch: a rise of a few errors in a hundred is none, but many of them are") {
  Watched it;
  it.batches(4000, 0.046);
  it.batches(12'000, 0.055);
  CHECK_FALSE(it.watch.report_change());
  CHECK(it.metrics["stream_changes_total"] == 0);
  for (const double errors : {0.06, 0.068}) it.batches(6000, errors);
  CHECK(it.watch.report_change());
}

TEST_CASE("Stream watch: a model that had learned, and errs on all rows at once, is an alarm soon") {
  Watched it;
  it.batches(60, 0.5);
  it.batches(60, 0);
  it.batches(10, 1);
  CHECK(it.watch.report_change());
}

TEST_CASE("Stream watch: errors and outliers of rows that others gave are not this stream's") {
  Watched it;
  it.batches(100, 0.3);
  constexpr std::size_t rows = 30;
  constexpr std::size_t own = 10;
  std::vector<float> features;
  std::vector<float> targets(rows, 1);
  std::vector<float> answers(rows, 1);
  for (std::size_t i = 0; i < rows; ++i) features.insert(features.end(), {i < own ? 20.0F : 900.0F, 0.0F});
  std::fill_n(answers.begin(), own, 0.0F);  // all of its own are wrong
  const std::vector<std::uint32_t> beyond{20, 0};
  for (int i = 0; i < 60; ++i)
    it.watch.computed({.correct = rows - own, .rows = rows, .beyond = beyond, .answers = answers},
                      {features, targets, rows, {}}, own);
  CHECK(it.watch.report_change());
  CHECK(it.metrics["feature_outliers_total/temp"] == 0);
  features[0] = 900;
  it.watch.computed({.correct = rows - own, .rows = rows, .beyond = beyond, .answers = answers},
                    {features, targets, rows, {}}, own);
  CHECK(it.metrics["feature_outliers_total/temp"] == 1);
}

TEST_CASE("Stream watch: of large batches with many errors no order makes a change") {
  Watched it;
  constexpr std::size_t rows = 128;
  const std::vector<float> features(2 * rows, 1.0F);
  for (int i = 0; i < 200; ++i) {
    const auto wrong = static_cast<std::uint64_t>(it.rng.below(13)) + 32;  // about 30 %
    const devices::StepReport report{.correct = rows - wrong, .rows = rows};
    it.watch.computed(report, {features, {}, rows, {}}, rows);
  }
  CHECK_FALSE(it.watch.report_change());
}

TEST_CASE("Stream watch: of a regression a loss far above 1 is watched, too, by what it is itself") {
  Watched it(false);
  it.batches(600, 4);
  it.batches(600, 4.8);
  CHECK_FALSE(it.watch.report_change());
  it.batches(600, 14);
  CHECK(it.watch.report_change());
}

TEST_CASE("Stream watch: of a regression the loss is watched") {
  Watched it(false);
  it.batches(300, 0.1);
  it.batches(60, 3);
  CHECK(it.watch.report_change());
}

TEST_CASE("Stream watch: outliers are counted by feature, and the first is named") {
  Watched it;
  it.batch(0, 20, {2, 0});
  CHECK(it.metrics["feature_outliers_total/temp"] == 2);
  CHECK(it.log.count("clipped") == 0);  // the usual value is still unknown
  it.batches(10, 0);
  it.batch(0, 20, {1, 0});
  it.batch(0, 20, {0, 4});
  CHECK(it.metrics["feature_outliers_total/temp"] == 3);
  CHECK(it.metrics["feature_outliers_total/rms"] == 4);
  CHECK(it.log.count("clipped") == 2);
  Watched far;
  far.batches(300, 0);
  far.batch(0, 4321, {1, 0});
  CHECK(far.log.count("feature=temp value=43") == 1);
}

TEST_CASE("Stream watch: a feature that has moved is in the log once, in the status, and a metric") {
  Watched it;
  it.batches(300, 0);
  it.batches(60, 0, 40);
  CHECK(it.log.count("a feature has moved") == 1);
  const auto findings = it.status.stream_findings();
  REQUIRE(findings.moved.size() == 1);
  CHECK(findings.moved.front().starts_with("temp ("));
  CHECK(it.metrics["feature_distance_ratio/temp"] > 3);
  CHECK(it.metrics["feature_distance_ratio/rms"] < 1);
  CHECK(it.metrics["stream_changes_total"] == 1);
  REQUIRE(it.status.history()->marks().size() == 1);
  CHECK(it.status.history()->marks()[0].phrase.starts_with("feature temp has moved: "));
}

TEST_CASE("Stream watch: what a feature that has moved is like is shown again after a while") {
  Watched it;
  it.batches(300, 0);
  it.batches(30, 0, 40);
  REQUIRE(it.status.stream_findings().moved.size() == 1);
  const auto first = it.status.stream_findings().moved.front();
  it.batches(7, 0, 40);                                       // evaluated together
  CHECK(it.status.stream_findings().moved.front() == first);  // values alone wait
  it.clock.advance_by(std::chrono::seconds(6));
  it.batches(7, 0, 40);
  CHECK(it.status.stream_findings().moved.front() != first);
}

TEST_CASE("Stream watch: a feature that stands still is told once, counted and marked") {
  Watched it;
  it.batches(300, 0);
  it.stuck = true;
  it.batches(300, 0);
  CHECK(it.log.count("a feature is constant") == 1);
  CHECK(it.status.stream_findings().stuck == std::vector<std::string>{"temp"});
  CHECK(it.metrics["stream_changes_total"] == 1);
  REQUIRE(it.status.history()->marks().size() == 1);
  CHECK(it.status.history()->marks()[0].phrase == "feature temp is constant");
}
