// Compares model mlp's own layers with LibTorch's.
#include <doctest/doctest.h>

#include <cmath>
#include <tuple>

#include "devices/torch_mlp.h"
#include "tests/support/model_fixture.h"
#include "tests/support/sgd.h"

using namespace rivulet;
using namespace rivulet::devices;
using namespace rivulet::testing;

namespace {

struct Side {
  explicit Side(const ModelConfig& config, bool by_torch)
      : trainer(by_torch ? make_torch_mlp(config, mlp_shape(config), {}).value()
                         : make_trainer(config, *device)),
        state(make_state(*trainer, *device, 9)),
        memory(make_contribution(trainer->layout(), *device)),
        out(view_of(*memory, trainer->layout())) {}

  std::unique_ptr<Device> device = make_host_device();
  std::unique_ptr<Trainer> trainer;
  ModelState state;
  std::unique_ptr<Memory> memory;
  GradientView out;
};

void check_twins(const ModelConfig& config, std::size_t rows) {
  Side own(config, false);
  Side torch(config, true);
  REQUIRE(own.trainer->layout().parameters == torch.trainer->layout().parameters);
  for (std::size_t i = 0; i < own.trainer->layout().parameter_slots.size(); ++i) {
    const TensorSlot& a = own.trainer->layout().parameter_slots[i];
    const TensorSlot& b = torch.trainer->layout().parameter_slots.at(i);
    CHECK(std::tie(a.name, a.shape, a.begin, a.count) == std::tie(b.name, b.shape, b.begin, b.count));
  }
  CHECK(digest_of_state(own.state, *own.device) == digest_of_state(torch.state, *torch.device));
  const Rows all(config, rows, 4);
  const double tolerance = config.scalar == Scalar::f32 ? 1e-5 : 1e-12;
  for (int step = 0; step < 3; ++step) {
    const auto a = own.trainer->compute_gradients(own.state, all.all(), own.out).value();
    const auto b = torch.trainer->compute_gradients(torch.state, all.all(), torch.out).value();
    CHECK(relative_l2(numbers_of(own.out), numbers_of(torch.out)) < tolerance);
    CHECK(a.loss_sum == doctest::Approx(b.loss_sum).epsilon(1e-5));
    CHECK(a.correct == b.correct);
    CHECK(a.rows == b.rows);
    CHECK(a.gradient_norm2 == doctest::Approx(b.gradient_norm2).epsilon(1e-4));
    REQUIRE(a.answers.size() == b.answers.size());
    for (std::size_t i = 0; i < a.answers.size(); ++i)
      CHECK(a.answers[i] == doctest::Approx(b.answers[i]).epsilon(1e-4));
    sgd_step(own.state, own.out);
    sgd_step(torch.state, torch.out);
  }
  CHECK(relative_l2(numbers_of(own.state.parameters()), numbers_of(torch.state.parameters())) < tolerance);
  const auto mine = own.trainer->predict(own.state, all.all()).value();
  const auto theirs = torch.trainer->predict(own.state, all.all()).value();
  CHECK(relative_l2({mine.begin(), mine.end()}, {theirs.begin(), theirs.end()}) < 1e-5);
  CHECK(own.trainer->evaluate(own.state, all.all()).value().loss_sum ==
        doctest::Approx(torch.trainer->evaluate(own.state, all.all()).value().loss_sum).epsilon(1e-5));
}

}  // namespace

TEST_CASE("MLP: our own layers begin as LibTorch's, to the bit, and step as they do") {
  for (const Scalar scalar : {Scalar::f32, Scalar::f64})
    for (const char* activation : {"relu", "tanh"})
      for (const Loss loss : {Loss::cross_entropy, Loss::mse})
        for (const bool skip : {false, true}) {
          ModelConfig config = config_of("mlp", scalar);
          config.input = {9};
          set_hidden(config, {33, 16, 7});
          config.outputs = 3;
          set_activation(config, activation);
          config.loss = loss;
          set_skip(config, skip);
          CAPTURE(activation);
          CAPTURE(bytes_of(scalar));
          CAPTURE(skip);
          check_twins(config, 16);
          check_twins(config, 129);
        }
}

TEST_CASE("MLP: wide layers and a GPU's numbers are LibTorch's") {
  const auto device = make_host_device();
  ModelConfig config = config_of("mlp");
  set_hidden(config, {512, 512});
  Side chosen(config, false);
  Side torch(config, true);
  const Rows rows(config, 16, 4);
  REQUIRE(chosen.trainer->compute_gradients(chosen.state, rows.all(), chosen.out));
  REQUIRE(torch.trainer->compute_gradients(torch.state, rows.all(), torch.out));
  CHECK(digest_of_numbers(chosen.out) == digest_of_numbers(torch.out));
  set_hidden(config, {16});
  Side narrow(config, false);
  Side other(config, true);
  REQUIRE(narrow.trainer->compute_gradients(narrow.state, rows.all(), narrow.out));
  REQUIRE(other.trainer->compute_gradients(other.state, rows.all(), other.out));
  CHECK(digest_of_numbers(narrow.out) != digest_of_numbers(other.out));
}
