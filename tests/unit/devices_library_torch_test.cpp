// Compares our values with LibTorch's, and tests what only its models have: batch norm, threads, errors.
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/torch.h>
// Before doctest: both define CHECK.
#undef CHECK
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/support/model_fixture.h"
#include "tests/support/sgd.h"

using namespace rivulet;
using namespace rivulet::devices;
using namespace rivulet::testing;

namespace {

/// A named tensor of a flat array as a LibTorch tensor. Shares the memory.
torch::Tensor tensor_at(const GradientView& flat, const std::vector<TensorSlot>& slots,
                        std::string_view name) {
  for (const TensorSlot& slot : slots) {
    if (slot.name != name) continue;
    const GradientView part = flat.slice(slot.begin, slot.count);
    return torch::from_blob(part.data, slot.shape,
                            part.scalar == Scalar::f32 ? torch::kFloat32 : torch::kFloat64);
  }
  FAIL("no such tensor: " << name);
  return {};
}

double gap(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

struct Bench {
  explicit Bench(const ModelConfig& model)
      : config(model),
        trainer(make_trainer(config, *device)),
        layout(trainer->layout()),
        state(make_state(*trainer, *device, 1)),
        memory(make_contribution(layout, *device)),
        out(view_of(*memory, layout)) {}
  [[nodiscard]] torch::Tensor parameter(std::string_view name) const {
    return tensor_at(state.parameters(), layout.parameter_slots, name);
  }
  [[nodiscard]] torch::Tensor gradient(std::string_view name) const {
    return tensor_at(out, layout.parameter_slots, name);
  }
  [[nodiscard]] torch::Tensor new_buffer(std::string_view name) const {
    return tensor_at(out.slice(layout.parameters, layout.buffers), layout.buffer_slots, name);
  }

  std::unique_ptr<Device> device = make_host_device();
  ModelConfig config;
  std::unique_ptr<Trainer> trainer;
  ModelLayout layout;
  ModelState state;
  std::unique_ptr<Memory> memory;
  GradientView out;
};

torch::Tensor features_of(const Rows& rows, const ModelConfig& config, std::int64_t n) {
  std::vector<std::int64_t> shape{n};
  shape.insert(shape.end(), config.input.begin(), config.input.end());
  return torch::from_blob(rows.features().data(), shape, torch::kFloat32);
}

/// Twenty steps of both optimizers on the same gradients; the largest relative gap of the parameters.
double largest_gap_to_torch(Scalar scalar, const SgdConfig& sgd) {
  const auto dtype = scalar == Scalar::f32 ? torch::kFloat32 : torch::kFloat64;
  const auto device = make_host_device();
  ModelState state = std::move(ModelState::create({scalar, 50, 0, {}, {}}, *device)).value();
  torch::manual_seed(4);
  torch::Tensor theirs = torch::randn({50}, dtype).requires_grad_(true);
  torch::Tensor ours = torch::from_blob(state.parameters().data, {50}, dtype);
  ours.copy_(theirs.detach());
  torch::optim::SGD optimizer(
      {theirs},
      torch::optim::SGDOptions(sgd.learning_rate).momentum(sgd.momentum).weight_decay(sgd.weight_decay));
  double largest = 0;
  for (int step = 0; step < 20; ++step) {
    torch::Tensor gradient = torch::randn({50}, dtype);
    theirs.mutable_grad() = gradient.clone();
    sgd_step(state, {static_cast<std::byte*>(gradient.data_ptr()), 50, scalar}, sgd, 1.0);
    if (sgd.clip_grad_norm > 0) torch::nn::utils::clip_grad_norm_({theirs}, sgd.clip_grad_norm);
    optimizer.step();
    largest = std::max(largest, gap(ours, theirs.detach()));
  }
  return largest;
}

/// Five steps of lenet5 and of a plain loop; the largest relative gap of their parameters.
double largest_gap_of_lenet(Scalar scalar) {
  namespace nn = torch::nn;
  const auto dtype = scalar == Scalar::f32 ? torch::kFloat32 : torch::kFloat64;
  Bench bench(config_of("lenet5", scalar));
  nn::Sequential plain(nn::Conv2d(nn::Conv2dOptions(1, 6, 5).padding(2)), nn::ReLU(), nn::MaxPool2d(2),
                       nn::Conv2d(6, 16, 5), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
                       nn::Linear(400, 120), nn::ReLU(), nn::Linear(120, 84), nn::ReLU(), nn::Linear(84, 10));
  plain->to(dtype);
  const auto theirs = plain->parameters();
  const auto& slots = bench.layout.parameter_slots;
  REQUIRE(theirs.size() == slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) theirs[i].data().copy_(bench.parameter(slots[i].name));
  torch::optim::SGD optimizer(theirs, torch::optim::SGDOptions(0.05).momentum(0.9));
  for (std::uint64_t step = 0; step < 5; ++step) {
    const Rows rows(bench.config, 8, step);
    REQUIRE(bench.trainer->compute_gradients(bench.state, rows.all(), bench.out));
    devices::sgd_step(bench.state, bench.out, {0.05, 0.9, 0, 0}, 1.0);
    optimizer.zero_grad();
    const auto x = features_of(rows, bench.config, 8).to(dtype);
    const auto y = torch::from_blob(rows.targets().data(), {8}, torch::kFloat32).to(torch::kInt64);
    nn::functional::cross_entropy(plain->forward(x), y).backward();
    optimizer.step();
  }
  double largest = 0;
  for (std::size_t i = 0; i < slots.size(); ++i)
    largest = std::max(largest, gap(bench.parameter(slots[i].name), theirs[i].detach()));
  return largest;
}

ModelConfig changed(const char* name, void (*change)(ModelConfig&)) {
  ModelConfig config = config_of(name);
  change(config);
  return config;
}

/// Gap between a gradient of sixteen rows and the one without the change.
double gradient_gap(const char* name, void (*change)(ModelConfig&)) {
  Bench with(changed(name, change));
  Bench without(config_of(name));
  const Rows rows(with.config, 16, 3);
  REQUIRE(with.trainer->compute_gradients(with.state, rows.all(), with.out));
  REQUIRE(without.trainer->compute_gradients(without.state, rows.all(), without.out));
  const auto all = [](const Bench& bench) {
    return torch::from_blob(bench.out.data, {static_cast<std::int64_t>(bench.layout.parameters)},
                            torch::kFloat32);
  };
  return gap(all(with), all(without));
}

std::size_t threads_of_process() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ++n;
  return n;
}

}  // namespace

TEST_CASE("SGD: the same steps as torch::optim::SGD") {
  for (const SgdConfig& sgd : {SgdConfig{0.1, 0.0, 0.0, 0.0}, SgdConfig{0.05, 0.9, 0.0, 0.0},
                               SgdConfig{0.05, 0.9, 0.01, 0.0}, SgdConfig{0.05, 0.9, 0.01, 2.0}}) {
    CHECK(largest_gap_to_torch(Scalar::f64, sgd) < 1e-14);
    CHECK(largest_gap_to_torch(Scalar::f32, sgd) < 1e-6);
  }
}

namespace {

/// As largest_gap_to_torch(), for adam or adamw and LibTorch's class.
double largest_gap_of_adam(Scalar scalar, std::string_view name, double weight_decay) {
  const auto dtype = scalar == Scalar::f32 ? torch::kFloat32 : torch::kFloat64;
  const auto device = make_host_device();
  OptimizerConfig config{&optimizer_named(name), 0.01, weight_decay};
  config.settings.set("train.optimizer.beta1", 0.8);
  config.settings.set("train.optimizer.beta2", 0.99);
  config.settings.set("train.optimizer.eps", 1e-7);
  const ModelLayout layout{.scalar = scalar, .parameters = 50, .optimizer_arrays = arrays_of(*config.entry)};
  ModelState state = std::move(ModelState::create(layout, *device)).value();
  torch::manual_seed(5);
  torch::Tensor theirs = torch::randn({50}, dtype).requires_grad_(true);
  torch::Tensor ours = torch::from_blob(state.parameters().data, {50}, dtype);
  ours.copy_(theirs.detach());
  const std::vector<torch::Tensor> all{theirs};
  const std::tuple<double, double> betas(0.8, 0.99);
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (name == "adam") {
    torch::optim::AdamOptions options(0.01);
    options.betas(betas).eps(1e-7).weight_decay(weight_decay);
    optimizer = std::make_unique<torch::optim::Adam>(all, options);
  } else {
    torch::optim::AdamWOptions options(0.01);
    options.betas(betas).eps(1e-7).weight_decay(weight_decay);
    optimizer = std::make_unique<torch::optim::AdamW>(all, options);
  }
  double largest = 0;
  for (std::uint64_t step = 1; step <= 20; ++step) {
    torch::Tensor gradient = torch::randn({50}, dtype);
    theirs.mutable_grad() = gradient.clone();
    const GradientView agreed{static_cast<std::byte*>(gradient.data_ptr()), 50, scalar};
    REQUIRE(apply_gradient(config, state, agreed, 1.0, step, *device));
    optimizer->step();
    largest = std::max(largest, gap(ours, theirs.detach()));
  }
  return largest;
}

}  // namespace

TEST_CASE("Adam and AdamW: the same steps as LibTorch's, with and without weight decay") {
  for (const double decay : {0.0, 0.1}) {
    CHECK(largest_gap_of_adam(Scalar::f64, "adam", decay) < 1e-13);
    CHECK(largest_gap_of_adam(Scalar::f32, "adam", decay) < 1e-5);
    CHECK(largest_gap_of_adam(Scalar::f64, "adamw", decay) < 1e-13);
    CHECK(largest_gap_of_adam(Scalar::f32, "adamw", decay) < 1e-5);
  }
}

TEST_CASE("Linear: loss and gradient are LibTorch's") {
  for (const Loss loss : {Loss::cross_entropy, Loss::mse}) {
    ModelConfig config = config_of("linear", Scalar::f64);
    config.loss = loss;
    Bench bench(config);
    const Rows rows(config, 9, 2);
    const StepReport report = bench.trainer->compute_gradients(bench.state, rows.all(), bench.out).value();

    torch::Tensor weight = bench.parameter("weight").clone().requires_grad_(true);
    torch::Tensor bias = bench.parameter("bias").clone().requires_grad_(true);
    const torch::Tensor x = features_of(rows, config, 9).to(torch::kFloat64);
    const torch::Tensor y = torch::nn::functional::linear(x, weight, bias);
    const bool classes = loss == Loss::cross_entropy;
    const torch::Tensor targets =
        torch::from_blob(rows.targets().data(), {9, classes ? 1 : 10}, torch::kFloat32);
    const torch::Tensor value =
        classes ? torch::nn::functional::cross_entropy(y, targets.flatten().to(torch::kInt64))
                : torch::nn::functional::mse_loss(y, targets.to(torch::kFloat64));
    value.backward();
    CHECK(report.loss_sum == doctest::Approx(value.item<double>() * 9).epsilon(1e-12));
    CHECK(gap(bench.gradient("weight"), weight.grad()) < 1e-12);
    CHECK(gap(bench.gradient("bias"), bias.grad()) < 1e-12);
  }
}

TEST_CASE("LeNet-5: five steps are those of a plain LibTorch loop, in either precision and its layout") {
  CHECK(largest_gap_of_lenet(Scalar::f64) < 1e-12);
  CHECK(largest_gap_of_lenet(Scalar::f32) < 1e-4);
}

TEST_CASE("Models: how images lie changes the last bits of a gradient only, and is not ignored") {
  for (const char* name : {"lenet5", "cnn"}) {
    CAPTURE(name);
    CHECK(gradient_gap(name, [](ModelConfig& c) { c.memory_format = MemoryFormat::contiguous; }) < 1e-4);
  }
  CHECK(gradient_gap("cnn", [](ModelConfig& c) { c.memory_format = MemoryFormat::contiguous; }) > 0);
}

TEST_CASE("Models: bfloat16 rounds a gradient and nothing else") {
  const auto half = [](ModelConfig& c) { c.autocast_bfloat16 = true; };
  for (const char* name : {"lenet5", "cnn", "mlp"}) {
    CAPTURE(name);
    const double rounded = gradient_gap(name, half);
    CHECK(rounded > 1e-4);
    CHECK(rounded < 0.1);
    Bench with(changed(name, half));
    Bench without(config_of(name));
    const Rows rows(with.config, 16, 3);
    REQUIRE(with.trainer->compute_gradients(with.state, rows.all(), with.out));
    CHECK(digest_of_state(with.state, *with.device) == digest_of_state(without.state, *without.device));
    CHECK(
        with.trainer->evaluate(with.state, rows.all()).value().loss_sum ==
        doctest::Approx(without.trainer->evaluate(without.state, rows.all()).value().loss_sum).epsilon(1e-6));
    CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  }
}

TEST_CASE("Models: bfloat16 is refused where there is none") {
  const auto device = make_host_device();
  for (const auto& [name, scalar, words] :
       {std::tuple{"mlp", Scalar::f64, "needs model.dtype = \"float32\""},
        std::tuple{"linear", Scalar::f32, "linear does not support bfloat16"}}) {
    ModelConfig config = config_of(name, scalar);
    config.autocast_bfloat16 = true;
    const auto made = model_entry(name).make(config, *device);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == ErrorCode::invalid_config);
    CHECK(made.error().message.find(words) != std::string::npos);
  }
}

TEST_CASE("Models: sizes are those their comments say; the count of batches is not a number to average") {
  CHECK(Bench(config_of("lenet5")).layout.parameters == 61706);
  CHECK(Bench(config_of("lenet5")).layout.buffers == 0);
  CHECK(Bench(config_of("lenet5")).layout.batch_counts.empty());
  CHECK(Bench(config_of("cnn")).layout.parameters == 291370);
  CHECK(Bench(config_of("cnn")).layout.buffers == 448);
  CHECK(Bench(config_of("cnn")).layout.batch_counts.size() == 3);
}

TEST_CASE("Models: weights begin within PyTorch's default bounds, batch norm at one and zero") {
  const Bench bench(config_of("cnn"));
  const double bound = 1.0 / std::sqrt(27.0);  // 3 channels of 3 x 3
  for (const char* name : {"conv1.weight", "conv1.bias"}) {
    const double largest = bench.parameter(name).abs().max().item<double>();
    CHECK(largest <= bound);
    CHECK(largest > 0.8 * bound);
  }
  CHECK(bench.parameter("norm1.weight").eq(1.0).all().item<bool>());
  CHECK(bench.parameter("norm1.bias").eq(0.0).all().item<bool>());
  const GradientView buffers = bench.state.buffers();
  CHECK(tensor_at(buffers, bench.layout.buffer_slots, "norm2.running_mean").eq(0.0).all().item<bool>());
  CHECK(tensor_at(buffers, bench.layout.buffer_slots, "norm2.running_var").eq(1.0).all().item<bool>());
}

TEST_CASE("Batch norm: the contribution carries the moved averages, the state keeps its own until apply") {
  Bench bench(config_of("cnn", Scalar::f64));
  const Rows rows(bench.config, 6, 2);
  REQUIRE(bench.trainer->compute_gradients(bench.state, rows.all(), bench.out));
  REQUIRE(bench.trainer->compute_gradients(bench.state, rows.all(),
                                           bench.out));  // recomputed from the state, not accumulated

  const auto options =
      torch::nn::functional::Conv2dFuncOptions().bias(bench.parameter("conv1.bias")).padding(1);
  const torch::Tensor x = features_of(rows, bench.config, 6).to(torch::kFloat64);
  const torch::Tensor before_norm =
      torch::nn::functional::conv2d(x, bench.parameter("conv1.weight"), options);
  const torch::Tensor per_channel = before_norm.transpose(0, 1).flatten(1);
  CHECK(gap(bench.new_buffer("norm1.running_mean"), 0.1 * per_channel.mean(1)) < 1e-9);
  CHECK(gap(bench.new_buffer("norm1.running_var"), 0.9 + 0.1 * per_channel.var(1, true)) < 1e-9);

  const std::vector<double> announced =
      numbers_of(bench.out.slice(bench.layout.parameters, bench.layout.buffers));
  CHECK(numbers_of(bench.state.buffers()) != announced);
  devices::sgd_step(bench.state, bench.out, {}, 1.0);
  CHECK(numbers_of(bench.state.buffers()) == announced);
}

TEST_CASE("Batch norm: evaluation uses the state's averages") {
  Bench bench(config_of("cnn"));
  const Rows rows(bench.config, 6, 2);
  const auto before = bench.trainer->predict(bench.state, rows.all()).value();
  tensor_at(bench.state.buffers(), bench.layout.buffer_slots, "norm1.running_var").fill_(4.0);
  CHECK(bench.trainer->predict(bench.state, rows.all()).value() != before);
}

TEST_CASE("LibTorch: one thread means one, on whichever thread the trainer runs") {
  prepare_process(1);
  CHECK(at::get_num_threads() == 1);
  const std::size_t before = threads_of_process();  // other tests used the library with its default
  std::size_t threads = 0;
  std::thread([&] {
    Bench bench(config_of("lenet5"));
    const Rows rows(bench.config, 256, 2);
    for (int step = 0; step < 3; ++step) {
      REQUIRE(bench.trainer->compute_gradients(bench.state, rows.all(), bench.out));
    }
    threads = threads_of_process();
  }).join();
  CHECK(threads == before + 1);
}

TEST_CASE("LibTorch: what it refuses is an error of ours") {
  ModelConfig config = config_of("mlp");
  set_hidden(config, {std::int64_t{1} << 62});
  const auto device = make_host_device();
  const auto made = model_entry("mlp").make(config, *device);
  REQUIRE(!made);
  CHECK(made.error().code == ErrorCode::io);
  CHECK(made.error().message.find("LibTorch: ") == 0);
}

TEST_CASE("LibTorch models: shapes and keys they cannot work with are refused by name") {
  const auto device = make_host_device();
  const auto message_of = [&](const ModelConfig& config) {
    const auto made = model_entry(config.name).make(config, *device);
    REQUIRE(!made);
    CHECK(made.error().code == ErrorCode::invalid_config);
    return made.error().message;
  };
  ModelConfig lenet = config_of("lenet5");
  lenet.input = {1, 32, 32};
  CHECK(message_of(lenet) ==
        "model.name = \"lenet5\" needs rows of shape [1, 28, 28], but decode produces [1, 32, 32]");
  ModelConfig cnn = config_of("cnn");
  cnn.input = {3, 7, 32};
  CHECK(message_of(cnn).find("height and width of 8 or more") != std::string::npos);
  cnn.input = {1, 28, 28};
  const auto made = model_entry("cnn").make(cnn, *device);
  REQUIRE(made);
  const std::size_t behind_pools = 128 * 3 * 3;
  CHECK(made.value()->layout().parameter_slots.back().count == 10);
  CHECK(std::ranges::any_of(made.value()->layout().parameter_slots,
                            [&](const TensorSlot& slot) { return slot.count == 96 * behind_pools; }));
  ModelConfig mlp = config_of("mlp");
  set_activation(mlp, "gelu");
  CHECK(message_of(mlp).find("\"gelu\"; it must be relu or tanh") != std::string::npos);
  mlp = config_of("mlp");
  set_hidden(mlp, {4, 0});
  CHECK(message_of(mlp).find("model.mlp.hidden contains 0") != std::string::npos);
}

TEST_CASE("MLP: the activation is the one asked for") {
  ModelConfig config = config_of("mlp");
  set_hidden(config, {6});
  for (const bool tanh : {true, false}) {
    set_activation(config, tanh ? "tanh" : "relu");
    Bench bench(config);
    const Rows rows(config, 4, 2);
    const torch::Tensor hidden = torch::nn::functional::linear(
        features_of(rows, config, 4), bench.parameter("hidden0.weight"), bench.parameter("hidden0.bias"));
    const torch::Tensor y =
        torch::nn::functional::linear(tanh ? hidden.tanh() : hidden.relu(), bench.parameter("output.weight"),
                                      bench.parameter("output.bias"));
    auto predicted = bench.trainer->predict(bench.state, rows.all()).value();
    CHECK(gap(torch::from_blob(predicted.data(), {4, 10}, torch::kFloat32), y) < 1e-6);
  }
}

TEST_CASE("LibTorch: doctor learns the version, the libraries below, and the threads") {
  const auto facts = numeric_library_facts();
  const auto has = [&](std::string_view key) {
    for (const auto& [name, value] : facts) {
      if (name == key) return !value.empty();
    }
    return false;
  };
  for (const char* key : {"LibTorch", "BLAS", "oneDNN", "CPU capability", "threads"}) {
    CAPTURE(key);
    CHECK(has(key));
  }
}
