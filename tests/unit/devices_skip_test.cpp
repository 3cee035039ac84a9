// A linear layer in parallel to the hidden ones: its effect, its initial value, and its rewriting with the
// columns.
#include <doctest/doctest.h>

#include <algorithm>

#include "runtime/state/exported_model.h"
#include "tests/support/column_model.h"

using namespace rivulet;
using namespace rivulet::devices;
using namespace rivulet::testing;

namespace {

constexpr std::size_t features = ColumnModel::features;

ModelConfig with_skip(Loss loss, std::int64_t outputs) {
  ModelConfig config = config_of("mlp", Scalar::f64);
  config.input = {features};
  set_hidden(config, {6});
  set_skip(config, true);
  config.loss = loss;
  config.outputs = outputs;
  config.optimizer_arrays = {{"momentum", ArrayKind::delta}, {"exp_avg_sq", ArrayKind::square}};
  return config;
}

/// Draws new weights, as after some training.
ColumnModel followed(Loss loss) {
  ColumnModel one(with_skip(loss, loss == Loss::mse ? 1 : 2));
  for (double& w : one.state->parameters().as<double>()) w = one.rng.normal();
  one.target_scale = loss == Loss::mse ? 1 : 0;
  return one;
}

}  // namespace

TEST_CASE("Skip: it begins at 0, the other layers as without it, and it learns at once") {
  const auto device = make_host_device();
  ModelConfig config = with_skip(Loss::cross_entropy, 2);
  const auto trainer = make_trainer(config, *device);
  auto state = make_state(*trainer, *device, 3);
  set_skip(config, false);
  const auto without = make_trainer(config, *device);
  const auto plain = make_state(*without, *device, 3);
  const auto memory = make_contribution(trainer->layout(), *device);
  const auto out = view_of(*memory, trainer->layout());
  const Rows rows(config, 16, 4);
  REQUIRE(trainer->compute_gradients(state, rows.all(), out));
  const auto weights = numbers_of(state.parameters());
  const auto others = numbers_of(plain.parameters());
  for (const auto& slot : trainer->layout().parameter_slots) {
    INFO(slot.name);
    const auto twin = std::ranges::find(without->layout().parameter_slots, slot.name, &TensorSlot::name);
    if (slot.name == "skip.weight") {
      CHECK(slot.shape == std::vector<std::int64_t>{2, features});
      for (std::size_t i = 0; i < slot.count; ++i) {
        CHECK(weights[slot.begin + i] == 0);
        CHECK(out.as<double>()[slot.begin + i] != 0);
      }
    } else {
      REQUIRE(twin != without->layout().parameter_slots.end());
      for (std::size_t i = 0; i < slot.count; ++i) CHECK(weights[slot.begin + i] == others[twin->begin + i]);
    }
  }
}

TEST_CASE("Skip: what a model gives for a row stays when its features move") {
  auto one = followed(Loss::cross_entropy);
  one.stream(50);
  const std::vector<float> x{95, 0.5F, 5, 110, -1, 5, 120, 2, 5};
  const auto before = one.predict(x);
  const double shown = one.state->columns()[0].shown_deviation;
  one.level = 118;
  one.spread = 25;
  one.stream(100);
  CHECK(one.state->columns()[0].shown_deviation > 2 * shown);
  check_equal(one.predict(x), before, 1e-4);
}

TEST_CASE("Skip: what a regression gives for a row stays when features and targets move") {
  auto one = followed(Loss::mse);
  one.stream(50);
  const std::vector<float> x{95, 0.5F, 5, 110, -1, 5};
  const auto before = one.predict(x);
  one.level = 118;
  one.target_scale = 3;
  one.stream(100);
  CHECK(one.state->columns()[features].mean > 200);
  check_equal(one.predict(x), before, 1e-4);
}

TEST_CASE(
    "Skip: squares that an optimizer remembers follow the targets' deviation, squared, as they do behind") {
  auto one = followed(Loss::mse);
  one.stream(50);
  const auto squares = one.state->optimizer_array(1).as<double>();
  std::ranges::fill(squares, 1.0);
  const Rescaling by{.ratio = {1, 1, 1},
                     .shift = {0, 0, 0},
                     .woken = {false, false, false},
                     .gain = {3},
                     .offset = {7},
                     .moves = true};
  REQUIRE(one.state->layout().normalized.targets == 1);
  rescale(one.state->optimizer_array(1), ArrayKind::square, by, one.state->layout());
  for (const auto& slot : one.trainer->layout().parameter_slots) {
    INFO(slot.name);
    const bool behind = slot.name == "skip.weight" || slot.name.starts_with("output.");
    for (std::size_t i = 0; i < slot.count; ++i) CHECK(squares[slot.begin + i] == (behind ? 9 : 1));
  }
}

TEST_CASE("Skip: an exported model takes rows as they came") {
  auto one = followed(Loss::mse);
  one.stream(50);
  const auto x = one.rows(20);
  const auto expected = one.predict(x);
  const auto exported = runtime::exported_model({std::move(*one.state), {1, 1}, 0, {}});
  CHECK(exported.normalization == runtime::Normalization::folded);
  CHECK_FALSE(exported.targets.has_value());
  const auto plain = make_trainer(with_skip(Loss::mse, 1), *one.device);
  auto state = make_state(*plain, *one.device, 1);
  std::ranges::copy(exported.parameters, state.parameters().host_bytes().begin());
  const std::vector<float> none(20);
  check_equal(plain->predict(state, {x, none, 20, {}}).value(), expected, 1e-4);
}

TEST_CASE("Skip: a model without hidden layers has nothing to pass") {
  ModelConfig config = with_skip(Loss::cross_entropy, 2);
  set_hidden(config, {});
  const auto device = make_host_device();
  const auto made = model_entry("mlp").make(config, *device);
  REQUIRE_FALSE(made);
  CHECK(made.error().message == "model.mlp.skip needs a hidden layer to bypass");
}
