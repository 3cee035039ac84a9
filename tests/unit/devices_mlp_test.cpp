// Our own gradient of model mlp, without LibTorch, and its matrix products.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/rng.h"
#include "devices/products.h"
#include "tests/support/model_fixture.h"

using namespace rivulet;
using namespace rivulet::devices;
using namespace rivulet::testing;

namespace {

ModelConfig mlp(Loss loss, std::int64_t outputs, const std::string& activation = "relu") {
  ModelConfig config = config_of("mlp", Scalar::f64);
  config.input = {3, 7};
  set_hidden(config, {18, 5});
  config.loss = loss;
  config.outputs = outputs;
  set_activation(config, activation);
  return config;
}

/// A trainer with its own state and contribution.
struct Bench {
  explicit Bench(const ModelConfig& config)
      : trainer(make_trainer(config, *device)),
        state(make_state(*trainer, *device, 3)),
        memory(make_contribution(trainer->layout(), *device)),
        out(view_of(*memory, trainer->layout())) {}
  StepReport compute(const BatchView& batch) { return trainer->compute_gradients(state, batch, out).value(); }

  std::unique_ptr<Device> device = make_host_device();
  std::unique_ptr<Trainer> trainer;
  ModelState state;
  std::unique_ptr<Memory> memory;
  GradientView out;
};

/// The largest difference from a naive product; negative: memory after the result was written.
template <class T>
double gap_of_product(std::size_t rows, std::size_t columns, std::size_t depth, bool adds, bool transposed) {
  Rng rng(rows * 100 + columns);
  std::vector<T> left(rows * depth);
  std::vector<T> right(depth * padded(columns));
  const std::size_t out_row = columns + 3;
  std::vector<T> out(rows * out_row);
  for (auto* all : {&left, &right, &out})
    for (T& x : *all) x = static_cast<T>(rng.normal());
  const auto before = out;
  multiply(Product<T>{.rows = rows,
                      .columns = columns,
                      .depth = depth,
                      .left = left.data(),
                      .left_row = transposed ? 1 : depth,
                      .left_depth = transposed ? rows : 1,
                      .right = right.data(),
                      .right_row = padded(columns),
                      .out = out.data(),
                      .out_row = out_row,
                      .adds = adds});
  double gap = 0;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < out_row; ++c) {
      double sum = adds || c >= columns ? before[r * out_row + c] : 0;
      for (std::size_t d = 0; d < (c < columns ? depth : 0); ++d)
        sum += static_cast<double>(left[transposed ? d * rows + r : r * depth + d]) *
               right[d * padded(columns) + c];
      gap = std::max(gap, std::abs(sum - out[r * out_row + c]));
    }
  return gap;
}

}  // namespace

TEST_CASE("Products: of any shape, set or added to, and nothing behind is written") {
  for (const std::size_t rows : {1, 3, 4, 5, 8, 11})
    for (const std::size_t columns : {1, 7, 8, 9, 15, 16, 17, 33})
      for (const std::size_t depth : {1, 2, 6})
        for (const bool adds : {false, true})
          for (const bool transposed : {false, true}) {
            CAPTURE(rows);
            CAPTURE(columns);
            CAPTURE(depth);
            CHECK(gap_of_product<float>(rows, columns, depth, adds, transposed) < 1e-5);
            CHECK(gap_of_product<double>(rows, columns, depth, adds, transposed) < 1e-13);
          }
}

TEST_CASE("MLP: the gradient is the slope of the loss, with few rows and with more than pass at once") {
  for (const std::size_t rows : {1, 7, 64, 150}) {
    CAPTURE(rows);
    for (const char* activation : {"relu", "tanh"}) {
      for (const auto& [loss, outputs] :
           {std::pair(Loss::cross_entropy, 4), std::pair(Loss::mse, 3), std::pair(Loss::mse, 1)}) {
        auto config = mlp(loss, outputs, activation);
        CHECK(gap_to_slope(config, rows) < 1e-6);
        set_skip(config, true);
        CHECK(gap_to_slope(config, rows) < 1e-6);
        set_skip(config, false);
        set_hidden(config, {});
        CHECK(gap_to_slope(config, rows) < 1e-6);
      }
    }
  }
}

TEST_CASE("MLP: a row's weight is its class's") {
  const auto config = mlp(Loss::cross_entropy, 2);
  Bench bench(config);
  const Rows rows(config, 20, 4);
  const std::vector<float> weights{3, 0.5F};
  BatchView batch = rows.all();
  batch.class_weights = weights;
  const auto weighed = bench.compute(batch);
  const auto all = numbers_of(bench.out);
  std::vector<double> sum(all.size(), 0.0);
  double loss = 0;
  for (std::size_t row = 0; row < 20; ++row) {
    loss += bench.compute(rows.view(row, 1)).loss_sum;
    const auto one = numbers_of(bench.out);
    const float weight = weights[static_cast<std::size_t>(rows.targets()[row])];
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * one[i] / 20;
  }
  CHECK(relative_l2(all, sum) < 1e-12);
  CHECK(weighed.loss_sum == doctest::Approx(loss));  // the reported loss is unweighted
}

TEST_CASE("MLP: a value that is not a number is not hidden by an activation") {
  for (const char* activation : {"relu", "tanh"}) {
    const auto config = mlp(Loss::cross_entropy, 3, activation);
    Bench bench(config);
    const Rows rows(config, 5, 4);
    CHECK(bench.compute(rows.all()).finite);
    rows.features()[8] = std::numeric_limits<float>::quiet_NaN();
    CHECK_FALSE(bench.compute(rows.all()).finite);
    CHECK_FALSE(bench.trainer->evaluate(bench.state, rows.all()).value().finite);
    CHECK(bench.compute(rows.view(1, 4)).finite);  // no trace of it is left
  }
}

TEST_CASE("MLP: what a batch of another size left in the scratch changes no bit") {
  const auto config = mlp(Loss::cross_entropy, 3);
  Bench used(config);
  Bench fresh(config);
  const Rows rows(config, 100, 4);
  used.compute(rows.all());
  used.compute(rows.view(3, 37));
  fresh.compute(rows.view(3, 37));
  CHECK(digest_of_numbers(used.out) == digest_of_numbers(fresh.out));
}
