#include <algorithm>
#include <array>

#include "devices/model_support.h"
#include "devices/torch/torch_trainer.h"

namespace rivulet::devices {
namespace {

constexpr std::array<std::int64_t, 3> picture{1, 28, 28};

/// LeCun et al. 1998, with ReLU and max pooling: 61 706 parameters for ten classes.
///   [n, 1, 28, 28] conv 5x5 pad 2 -> [n, 6, 28, 28] pool -> [n, 6, 14, 14]
///                  conv 5x5       -> [n, 16, 10, 10] pool -> [n, 16, 5, 5] -> 120 -> 84 -> outputs
struct LeNet5 final : Network {
  explicit LeNet5(const ModelConfig& config)
      : conv1_(register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 6, 5).padding(2)))),
        conv2_(register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(6, 16, 5)))),
        full1_(register_module("full1", torch::nn::Linear(16 * 5 * 5, 120))),
        full2_(register_module("full2", torch::nn::Linear(120, 84))),
        output_(register_module("output", torch::nn::Linear(84, config.outputs))) {}

  torch::Tensor forward(torch::Tensor rows) override {
    // Pooling first: the same values as ReLU first, on a quarter of the pixels.
    rows = torch::relu(torch::max_pool2d(conv1_(rows), 2));
    rows = torch::relu(torch::max_pool2d(conv2_(rows), 2));
    rows = torch::relu(full1_(rows.flatten(1)));
    return output_(torch::relu(full2_(rows)));
  }

  torch::nn::Conv2d conv1_;
  torch::nn::Conv2d conv2_;
  torch::nn::Linear full1_;
  torch::nn::Linear full2_;
  torch::nn::Linear output_;
};

Result<std::unique_ptr<Trainer>> make(const ModelConfig& config, Device& device) {
  if (Status good = check_model_config(config); !good) return good.error();
  if (!std::ranges::equal(config.input, picture)) return wrong_input(config, "[1, 28, 28]");
  return make_torch_trainer(
      config, device.computes_on(),
      [](const ModelConfig& c) -> std::shared_ptr<Network> { return std::make_shared<LeNet5>(c); });
}

/// Memory per row: planes of the two convolutions, pooled planes with their indices, and a gradient of each.
ModelNeeds needs(const ModelConfig& config) {
  const auto outputs = static_cast<double>(config.outputs);
  constexpr double planes = 6 * 28 * 28 + 16 * 10 * 10;
  // In double precision a convolution is a product over unfolded windows.
  const double windows = config.scalar == Scalar::f64 ? 25.0 * 28 * 28 + 150.0 * 10 * 10 + 28 * 28 : 0;
  return {61'706 + 85 * (outputs - 10), 5 * (planes + 120 + 84 + outputs) + windows};
}

}  // namespace

extern const ModelEntry model_lenet5;
const ModelEntry model_lenet5{
    .name = "lenet5",
    .help = "LeNet-5 for one-channel images of 28 x 28",
    .make = make,
    .needs = needs,
    .linear_last = true,
    .suits = [](std::span<const std::int64_t> shape) { return std::ranges::equal(shape, picture) ? 3 : 0; }};

}  // namespace rivulet::devices
