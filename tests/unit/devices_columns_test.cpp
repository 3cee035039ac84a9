// When the normalization of columns changes, the adjacent layers are rewritten: the function is unchanged.
#include "devices/columns.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "tests/support/column_model.h"

using namespace rivulet;
using namespace rivulet::devices;
using namespace rivulet::testing;

namespace {

constexpr std::size_t features = ColumnModel::features;
constexpr std::size_t outputs = 2;

ColumnModel linear(Loss loss, std::vector<OptimizerArray> arrays = {{"momentum", ArrayKind::delta}}) {
  ModelConfig config = config_of("linear", Scalar::f64);
  config.input = {features};
  config.outputs = outputs;
  config.loss = loss;
  config.optimizer_arrays = std::move(arrays);
  return ColumnModel(config);
}
ColumnModel classifier() {
  return linear(Loss::cross_entropy);
}
ColumnModel regression() {
  return linear(Loss::mse);
}

}  // namespace

TEST_CASE("Columns: what a model gives for a row stays, however far its columns move") {
  auto model = classifier();
  model.target_scale = 0;  // class 0
  model.stream(50);
  const std::vector<float> x{95, 0.5F, 5, 110, -1, 5, 120, 2, 5};
  const auto before = model.predict(x);
  const double shown = model.state->columns()[0].shown_deviation;
  model.level = 118;
  model.spread = 25;
  model.stream(100);
  CHECK(model.state->columns()[0].shown_deviation > 2 * shown);
  check_equal(model.predict(x), before);
}

TEST_CASE("Columns: predictions of a regression stay when its targets move, and are in their unit") {
  auto model = regression();
  model.stream(50);
  const std::vector<float> x{95, 0.5F, 5, 110, -1, 5};
  const auto before = model.predict(x);
  CHECK(before[0] > 50);  // close to the mean of the targets
  model.target_scale = 3;
  model.stream(100);
  CHECK(model.state->columns()[features].mean > 200);
  check_equal(model.predict(x), before);
}

TEST_CASE("Columns: what is told of the rows of a regression is in the unit of its targets") {
  auto model = regression();
  model.target_scale = 1000;
  model.stream(50);
  const auto x = model.rows(20);
  const auto y = model.targets(x);
  const auto predicted = model.predict(x);
  const auto report = model.trainer->compute_gradients(*model.state, {x, y, 20, {}}, model.out).value();
  check_equal({report.answers.begin(), report.answers.end()}, predicted);
}

TEST_CASE("Columns: the loss of normalized targets is in their variances") {
  auto model = regression();
  model.target_scale = 1000;
  model.stream(100);
  for (double& w : model.state->parameters().as<double>()) w = 0;  // outputs the mean
  const auto x = model.rows(2000);
  const auto y = model.targets(x);
  const auto report = model.trainer->evaluate(*model.state, {x, y, 2000, {}}).value();
  CHECK(report.loss_sum / 2000 == doctest::Approx(1).epsilon(0.1));
}

TEST_CASE("Columns: a movement moves the function as far, wherever the columns have gone") {
  auto model = classifier();
  model.target_scale = 0;
  model.stream(50);
  std::vector<double> delta{0.3, -0.2, 0.1, 0.5, 0.25, -0.4, 0.2, -0.1};
  const std::vector<float> x{95, 0.5F, 5, 110, -1, 5};
  const auto effect = [&](const std::vector<double>& by) {
    const auto from = model.predict(x);
    const auto w = model.state->parameters().as<double>();
    for (std::size_t i = 0; i < by.size(); ++i) w[i] += by[i];
    auto to = model.predict(x);
    for (std::size_t i = 0; i < by.size(); ++i) w[i] -= by[i];
    for (std::size_t i = 0; i < to.size(); ++i) to[i] -= from[i];
    return to;
  };
  const auto before = effect(delta);
  const std::vector<Column> was(model.state->columns().begin(), model.state->columns().end());
  model.level = 118;
  model.spread = 25;
  model.stream(100);
  const auto& layout = model.state->layout();
  const auto by = rescaling_between(was, model.state->columns(), layout.normalized);
  CHECK(by.moves);
  rescale({.data = reinterpret_cast<std::byte*>(delta.data()), .count = 8, .scalar = Scalar::f64},
          ArrayKind::delta, by, layout);
  check_equal(effect(delta), before, 1e-4);
}

TEST_CASE("Columns: what an optimizer remembers of gradients is of the rewritten layer") {
  auto model =
      linear(Loss::cross_entropy, {{"exp_avg", ArrayKind::gradient}, {"exp_avg_sq", ArrayKind::square}});
  model.target_scale = 0;
  model.stream(50);
  const auto x = model.rows(400);
  const std::vector<float> y(400, 0.0F);
  const auto gradient = [&] {
    REQUIRE(model.trainer->compute_gradients(*model.state, {x, y, 400, {}}, model.out));
    const auto all = model.out.as<double>().first(8);
    return std::vector<double>(all.begin(), all.end());
  };
  const auto was = gradient();
  const auto remembered = model.state->optimizer_array(0).as<double>();
  std::ranges::copy(was, remembered.begin());
  model.level = 112;
  model.stream(60);
  const auto is = gradient();
  CHECK(std::abs(is[0] - was[0]) > 0.01);
  for (std::size_t i = 0; i < 8; ++i) CHECK(remembered[i] == doctest::Approx(is[i]).epsilon(1e-3));
}

TEST_CASE("Columns: a column that wakes begins with weights of 0, and one that jumps keeps its own") {
  auto model = classifier();
  model.target_scale = 0;
  model.stream(50);
  const auto w = model.state->parameters().as<double>();
  CHECK(w[2] != 0);
  const double first = w[0];
  model.level = 5000;
  for (int i = 0; i < 60; ++i) {
    auto x = model.rows(20);
    for (std::size_t row = 0; row < 20; ++row) x[row * features + 2] = static_cast<float>(row % 3);
    model.measure(x, std::vector<float>(20, 0.0F));
  }
  CHECK(model.state->columns()[2].shown_deviation > 0);
  CHECK(w[2] == 0);
  CHECK(w[5] == 0);
  CHECK(std::abs(w[0]) < 20 * std::abs(first));  // not 1e5 times as large
}

TEST_CASE("Columns: rows that come one by one at first leave the layer its weights") {
  auto model = classifier();
  model.target_scale = 0;
  const auto all = model.state->parameters().as<double>();
  const std::vector<double> began(all.begin(), all.end());
  for (int i = 0; i < 20; ++i) {
    const auto x = model.rows(1);
    model.measure(x, {0.0F});
  }
  CHECK(model.state->columns()[0].shown_deviation > 0);
  double size = 0;
  for (std::size_t o = 0; o < outputs; ++o)
    size += std::abs(all[o * features]) / std::abs(began[o * features]);
  CHECK(size > 0.05);
}

TEST_CASE(
    "Columns: switches, of which batches often hold one position only, keep their weights and deviations") {
  for (const std::size_t each : {1U, 2U, 3U, 4U, 5U, 8U, 16U}) {
    INFO(each);
    auto model = classifier();
    const auto all = model.state->parameters().as<double>();
    const std::vector<double> began(all.begin(), all.end());
    for (std::size_t rows = 0; rows < 1000; rows += each) {
      std::vector<float> x;
      for (std::size_t i = 0; i < each; ++i)
        for (std::size_t f = 0; f < features; ++f) x.push_back(model.rng.uniform() < 0.5 ? 0.0F : 1.0F);
      model.measure(x, std::vector<float>(each));
    }
    for (std::size_t f = 0; f < features; ++f) {
      CHECK(model.state->columns()[f].shown_deviation == doctest::Approx(0.5).epsilon(0.05));
      CHECK(std::abs(all[f]) > 0.2 * std::abs(began[f]));
      CHECK(std::abs(all[f]) < 5 * std::abs(began[f]));
    }
  }
}

TEST_CASE("Columns: a switch that stays for long in each position is known, not forgotten with each turn") {
  for (const std::size_t turns : {40U, 300U}) {
    INFO(turns);
    auto model = classifier();
    for (std::size_t row = 0; row < 6000; row += 40) {  // unused in the first 1000 rows
      const bool on = row >= 1000 && (row - 1000) / turns % 3 == 0;
      std::vector<float> x;
      for (std::size_t i = 0; i < 40; ++i)
        x.insert(x.end(), {on ? 1.0F : 0.0F, static_cast<float>(model.rng.normal()), 5.0F});
      model.measure(x, std::vector<float>(40));
      if (row >= 1100) CHECK(model.state->columns()[0].shown_deviation > 0.1);
    }
    CHECK(model.state->columns()[0].shown_deviation == doctest::Approx(0.47).epsilon(0.15));
  }
}

TEST_CASE("Columns: a machine that begins switched off, and is on for as long, has two states") {
  auto model = classifier();
  for (std::size_t row = 0; row < 1000; row += 20) {
    std::vector<float> x;
    for (std::size_t i = 0; i < 20; ++i)
      x.insert(x.end(), {(row + i) / 100 % 2 == 0 ? 0.0F : static_cast<float>(230 + 2 * model.rng.normal()),
                         static_cast<float>(model.rng.normal()), 5.0F});
    model.measure(x, std::vector<float>(20));
  }
  CHECK(model.state->columns()[0].shown_deviation == doctest::Approx(115).epsilon(0.1));
}
