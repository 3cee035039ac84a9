#include "tests/support/model_fixture.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/rng.h"
#include "core/sha256.h"
#include "tests/support/places.h"

namespace rivulet::testing {

using devices::Loss;
using devices::ModelConfig;
using devices::ModelState;

const devices::ModelEntry& model_entry(std::string_view name) {
  for (const devices::ModelEntry* entry : devices::builtin_models()) {
    if (entry->name == name) return *entry;
  }
  check_failed(__FILE__, __LINE__, "model_entry", name);
}

void pin_script(ModelConfig& config, const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  RIVULET_CHECK(!bytes.empty(), file);
  config.settings.set("model.file", file);
  config.settings.set("model.sha256", hex_of(sha256_of(std::as_bytes(std::span(bytes)))));
}

void set_hidden(ModelConfig& config, Settings::Integers widths) {
  config.settings.set("model.mlp.hidden", std::move(widths));
}

void set_activation(ModelConfig& config, const std::string& name) {
  config.settings.set("model.mlp.activation", name);
}

void set_skip(ModelConfig& config, bool skip) {
  config.settings.set("model.mlp.skip", skip);
}

devices::MlpShape mlp_shape(const ModelConfig& config) {
  return {.hidden = config.settings.integers("model.mlp.hidden"),
          .tanh = config.settings.text("model.mlp.activation") == "tanh",
          .skip = config.settings.flag("model.mlp.skip")};
}

ModelConfig config_of(std::string_view model, Scalar scalar) {
  ModelConfig config;
  config.name = model;
  config.input = {12};
  if (model == "lenet5") config.input = {1, 28, 28};
  if (model == "cnn") config.input = {3, 32, 32};
  config.outputs = 10;
  set_hidden(config, {16, 8});
  set_activation(config, "relu");
  set_skip(config, false);
  config.scalar = scalar;
  if (model == "torchscript") pin_script(config, source_path("tests/support/models/net.pt"));
  return config;
}

std::unique_ptr<devices::Trainer> make_trainer(const ModelConfig& config, devices::Device& device) {
  auto trainer = model_entry(config.name).make(config, device);
  RIVULET_CHECK(trainer, trainer.error().message);
  return std::move(trainer).value();
}

ModelState make_state(devices::Trainer& trainer, devices::Device& device, std::uint64_t seed) {
  auto state = ModelState::create(trainer.layout(), device);
  RIVULET_CHECK(state, state.error().message);
  const Status done = trainer.initialize(state.value(), seed);
  RIVULET_CHECK(done, done.error().message);
  return std::move(state).value();
}

std::unique_ptr<devices::Memory> make_contribution(const devices::ModelLayout& layout,
                                                   devices::Device& device) {
  auto memory = device.allocate(layout.contribution() * bytes_of(layout.scalar));
  RIVULET_CHECK(memory, memory.error().message);
  return std::move(memory).value();
}

Rows::Rows(const ModelConfig& config, std::size_t rows, std::uint64_t seed)
    : rows_(rows),
      columns_(RowShape{config.input, 1}.columns()),
      targets_per_row_(config.loss == Loss::cross_entropy ? 1 : static_cast<std::size_t>(config.outputs)) {
  const auto host = devices::make_host_device();
  feature_memory_ = std::move(host->allocate_shared(rows * columns_ * sizeof(float))).value();
  target_memory_ = std::move(host->allocate_shared(rows * targets_per_row_ * sizeof(float))).value();
  Rng rng(seed);
  for (float& x : features()) x = static_cast<float>(rng.normal());
  const bool classes = config.loss == Loss::cross_entropy;
  for (float& y : targets()) {
    y = static_cast<float>(
        classes ? static_cast<double>(rng.below(static_cast<std::uint64_t>(config.outputs))) : rng.normal());
  }
}

std::span<float> Rows::features() const {
  return feature_memory_->view(Scalar::f32, rows_ * columns_).as<float>();
}
std::span<float> Rows::targets() const {
  return target_memory_->view(Scalar::f32, rows_ * targets_per_row_).as<float>();
}

BatchView Rows::view(std::size_t first, std::size_t rows) const {
  return {features().subspan(first * columns_, rows * columns_),
          targets().subspan(first * targets_per_row_, rows * targets_per_row_),
          rows,
          {}};
}

std::vector<double> numbers_of(const GradientView& view) {
  if (view.scalar == Scalar::f64) {
    const auto numbers = view.as<double>();
    return {numbers.begin(), numbers.end()};
  }
  const auto numbers = view.as<float>();
  return {numbers.begin(), numbers.end()};
}

double relative_l2(const std::vector<double>& a, const std::vector<double>& b) {
  RIVULET_CHECK(a.size() == b.size(), "arrays differ in shape");
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(difference / size);
}

double gap_to_slope(const ModelConfig& config, std::size_t rows) {
  const auto device = devices::make_host_device();
  const auto trainer = make_trainer(config, *device);
  ModelState state = make_state(*trainer, *device, 3);
  const Rows batch(config, rows, 4);
  const auto memory = make_contribution(trainer->layout(), *device);
  const GradientView out = view_of(*memory, trainer->layout());
  RIVULET_CHECK(trainer->compute_gradients(state, batch.all(), out), "a gradient");
  const auto mean_loss = [&] {
    return trainer->evaluate(state, batch.all()).value().loss_sum / static_cast<double>(rows);
  };
  constexpr double h = 1e-6;
  std::vector<double> differences;
  for (double& w : state.parameters().as<double>()) {
    const double at = w;
    w = at + h;
    const double above = mean_loss();
    w = at - h;
    const double below = mean_loss();
    w = at;
    differences.push_back((above - below) / (2 * h));
  }
  return relative_l2(numbers_of(out), differences);
}

Digest digest_of_state(const ModelState& state, devices::Device& device) {
  Hasher hasher;
  const Status done = state.hash_into(hasher, device);
  RIVULET_CHECK(done, done.error().message);
  return hasher.finish();
}

Digest digest_of_numbers(const GradientView& view) {
  return digest_of(view.host_bytes());
}

}  // namespace rivulet::testing
