#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "tests/support/model_fixture.h"
#include "tests/support/sgd.h"

using namespace rivulet;
using namespace rivulet::devices;
using namespace rivulet::testing;

namespace {

ModelConfig linear(Loss loss, std::int64_t outputs, Scalar scalar = Scalar::f64) {
  ModelConfig config = config_of("linear", scalar);
  config.input = {3, 5};
  config.loss = loss;
  config.outputs = outputs;
  return config;
}

}  // namespace

TEST_CASE("Linear: the gradient is the slope of the loss") {
  CHECK(gap_to_slope(linear(Loss::cross_entropy, 4), 7) < 1e-8);
  CHECK(gap_to_slope(linear(Loss::mse, 3), 7) < 1e-8);
  CHECK(gap_to_slope(linear(Loss::mse, 1), 7) < 1e-8);
}

TEST_CASE("Linear: loss, hits and outputs of a case done by hand") {
  ModelConfig config = linear(Loss::cross_entropy, 2);
  config.input = {1};
  const auto device = make_host_device();
  const auto trainer = make_trainer(config, *device);
  ModelState state = make_state(*trainer, *device, 1);
  const auto w = state.parameters().as<double>();
  w[0] = 1.0;  // weights of the two classes, then their biases
  w[1] = -1.0;
  w[2] = 0.5;
  w[3] = 0.0;
  const Rows rows(config, 2, 1);
  rows.features()[0] = 1.0F;   // outputs 1.5, -1
  rows.features()[1] = -2.0F;  // outputs -1.5, 2
  rows.targets()[0] = 0.0F;
  rows.targets()[1] = 0.0F;
  CHECK(trainer->predict(state, rows.all()).value() == std::vector<float>{1.5F, -1.0F, -1.5F, 2.0F});
  const StepReport report = trainer->evaluate(state, rows.all()).value();
  CHECK(report.rows == 2);
  CHECK(report.correct == 1);
  CHECK(report.loss_sum == doctest::Approx(std::log1p(std::exp(-2.5)) + std::log1p(std::exp(3.5))));
}

TEST_CASE("Linear: mean squared error is the mean over the outputs of a row, summed over rows") {
  ModelConfig config = linear(Loss::mse, 2);
  config.input = {1};
  const auto device = make_host_device();
  const auto trainer = make_trainer(config, *device);
  ModelState state = std::move(ModelState::create(trainer->layout(), *device)).value();  // all outputs are 0
  const Rows rows(config, 2, 1);
  const std::vector<float> targets{1.0F, 3.0F, 2.0F, 0.0F};
  std::copy(targets.begin(), targets.end(), rows.targets().begin());
  CHECK(trainer->evaluate(state, rows.all()).value().loss_sum == doctest::Approx(5.0 + 2.0));
}

TEST_CASE("Linear: huge outputs do not overflow the softmax") {
  const ModelConfig config = linear(Loss::cross_entropy, 3, Scalar::f32);
  const auto device = make_host_device();
  const auto trainer = make_trainer(config, *device);
  ModelState state = make_state(*trainer, *device, 1);
  const Rows rows(config, 4, 1);
  for (float& x : rows.features()) x *= 1e6F;
  const auto memory = make_contribution(trainer->layout(), *device);
  const StepReport report =
      trainer->compute_gradients(state, rows.all(), view_of(*memory, trainer->layout())).value();
  CHECK(report.finite);
}

TEST_CASE("Linear: it learns a separable problem in a few steps") {
  ModelConfig config = linear(Loss::cross_entropy, 3, Scalar::f32);
  const auto device = make_host_device();
  const auto trainer = make_trainer(config, *device);
  ModelState state = make_state(*trainer, *device, 1);
  const Rows rows(config, 300, 1);
  for (std::size_t row = 0; row < 300; ++row)
    rows.features()[row * 15 + static_cast<std::size_t>(rows.targets()[row])] += 4;
  const auto memory = make_contribution(trainer->layout(), *device);
  const GradientView out = view_of(*memory, trainer->layout());
  for (int step = 0; step < 50; ++step) {
    REQUIRE(trainer->compute_gradients(state, rows.all(), out));
    devices::sgd_step(state, out, {0.1, 0.9, 0, 0}, 1.0);
  }
  CHECK(trainer->evaluate(state, rows.all()).value().correct > 280);
}
