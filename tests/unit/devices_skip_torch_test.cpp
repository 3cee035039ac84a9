// A linear layer beside the hidden ones: what it adds, where it begins, and that it follows the columns.
#include <doctest/doctest.h>

#include <cmath>

#include "core/rng.h"
#include "devices/columns.h"
#include "devices/host_memory.h"
#include "devices/normalizer.h"
#include "runtime/state/exported_model.h"
#include "tests/support/model_fixture.h"

using namespace rivulet;
using namespace rivulet::devices;
using namespace rivulet::testing;

namespace {

constexpr std::size_t features = 3;

ModelConfig with_skip(Loss loss, std::int64_t outputs) {
  ModelConfig config = config_of("mlp", Scalar::f64);
  config.input = {features};
  config.hidden = {6};
  config.skip = true;
  config.loss = loss;
  config.outputs = outputs;
  config.optimizer_arrays = {{"momentum", ArrayKind::movement}, {"exp_avg_sq", ArrayKind::square}};
  return config;
}

/// A model whose columns are followed; weights are drawn anew, as after some training.
struct Followed {
  explicit Followed(Loss loss) {
    const std::int64_t outputs = loss == Loss::mse ? 1 : 2;
    trainer = make_normalizing(make_trainer(with_skip(loss, outputs), *device), *device,
                               {.features = features,
                                .targets = loss == Loss::mse ? std::size_t{1} : 0,
                                .window = 500,
                                .linear_first = true,
                                .linear_last = true});
    state = std::make_unique<runtime::AgreedState>(
        runtime::AgreedState{make_state(*trainer, *device, 3), {1, 1}, 0, {}});
    for (double& w : model().parameters().as<double>()) w = rng.normal();
    memory = make_contribution(trainer->layout(), *device);
    out = view_of(*memory, trainer->layout());
  }
  ModelState& model() { return state->model; }
  std::vector<float> rows(std::size_t n) {
    std::vector<float> all;
    for (std::size_t i = 0; i < n; ++i)
      all.insert(all.end(),
                 {static_cast<float>(level + spread * rng.normal()), static_cast<float>(rng.normal()), 5.0F});
    return all;
  }
  void stream(int batches) {
    for (int i = 0; i < batches; ++i) {
      const auto x = rows(20);
      std::vector<float> y(20);
      for (std::size_t row = 0; row < 20; ++row) y[row] = target_scale * x[row * features];
      REQUIRE(trainer->compute_gradients(model(), {x, y, 20, {}}, out));
      copy_host_numbers(out.slice(trainer->layout().parameters, trainer->layout().buffers),
                        model().buffers());
      REQUIRE(follow_columns(model(), 20, *device));
    }
  }
  std::vector<float> predict(const std::vector<float>& x) {
    const std::size_t n = x.size() / features;
    const std::vector<float> none(n);
    return trainer->predict(model(), {x, none, n, {}}).value();
  }

  std::unique_ptr<Device> device = make_host_device();
  std::unique_ptr<Trainer> trainer;
  std::unique_ptr<runtime::AgreedState> state;
  std::unique_ptr<Memory> memory;
  GradientView out;
  Rng rng{5};
  double level = 100;
  double spread = 10;
  float target_scale = 0;
};

void check_equal(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-4));
}

}  // namespace

TEST_CASE("Skip: it begins at 0, the other layers as without it, and it learns at once") {
  const auto device = make_host_device();
  ModelConfig config = with_skip(Loss::cross_entropy, 2);
  const auto trainer = make_trainer(config, *device);
  auto state = make_state(*trainer, *device, 3);
  config.skip = false;
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
  Followed one(Loss::cross_entropy);
  one.stream(50);
  const std::vector<float> x{95, 0.5F, 5, 110, -1, 5, 120, 2, 5};
  const auto before = one.predict(x);
  const double shown = one.model().columns()[0].shown_deviation;
  one.level = 118;
  one.spread = 25;
  one.stream(100);
  CHECK(one.model().columns()[0].shown_deviation > 2 * shown);
  check_equal(one.predict(x), before);
}

TEST_CASE("Skip: what a regression gives for a row stays when features and targets move") {
  Followed one(Loss::mse);
  one.target_scale = 1;
  one.stream(50);
  const std::vector<float> x{95, 0.5F, 5, 110, -1, 5};
  const auto before = one.predict(x);
  one.level = 118;
  one.target_scale = 3;
  one.stream(100);
  CHECK(one.model().columns()[features].mean > 200);
  check_equal(one.predict(x), before);
}

TEST_CASE(
    "Skip: squares that an optimizer remembers follow the targets' deviation, squared, as they do behind") {
  Followed one(Loss::mse);
  one.target_scale = 1;
  one.stream(50);
  const auto squares = one.model().optimizer_array(1).as<double>();
  std::ranges::fill(squares, 1.0);
  const auto& columns = one.model().layout().normalized;
  Rescaling by{
      .ratio = {1, 1, 1}, .shift = {0, 0, 0}, .woken = {false, false, false}, .gain = {3}, .offset = {7}};
  by.moves = true;
  REQUIRE(columns.targets == 1);
  rescale(one.model().optimizer_array(1), ArrayKind::square, by, one.model().layout());
  for (const auto& slot : one.trainer->layout().parameter_slots) {
    INFO(slot.name);
    const bool behind = slot.name == "skip.weight" || slot.name.starts_with("output.");
    for (std::size_t i = 0; i < slot.count; ++i) CHECK(squares[slot.begin + i] == (behind ? 9 : 1));
  }
}

TEST_CASE("Skip: an exported model takes rows as they came") {
  Followed one(Loss::mse);
  one.target_scale = 1;
  one.stream(50);
  const auto x = one.rows(20);
  const auto expected = one.predict(x);
  const auto exported = runtime::exported_model(*one.state);
  CHECK(exported.normalization == runtime::Normalization::folded);
  CHECK_FALSE(exported.targets.has_value());
  const auto plain = make_trainer(with_skip(Loss::mse, 1), *one.device);
  auto state = make_state(*plain, *one.device, 1);
  std::ranges::copy(exported.parameters, state.parameters().host_bytes().begin());
  const std::vector<float> none(20);
  check_equal(plain->predict(state, {x, none, 20, {}}).value(), expected);
}

TEST_CASE("Skip: a model without hidden layers has nothing to pass") {
  ModelConfig config = with_skip(Loss::cross_entropy, 2);
  config.hidden = {};
  const auto device = make_host_device();
  const auto made = model_entry("mlp").make(config, *device);
  REQUIRE_FALSE(made);
  CHECK(made.error().message == "model.mlp.skip needs a hidden layer to pass");
}
