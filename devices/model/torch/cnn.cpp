#include "devices/model_support.h"
#include "devices/torch/torch_trainer.h"

namespace rivulet::devices {
namespace {

constexpr std::int64_t pools = 3;  ///< each halves height and width and drops a last odd row or column

/// Three blocks of conv 3x3, batch norm, pool, ReLU with 32, 64, 128 channels, then 96 -> outputs:
/// 291 370 parameters and 448 buffers for [3, 32, 32] and ten classes.
struct Cnn final : Network {
  explicit Cnn(const ModelConfig& config) {
    std::int64_t channels = config.input[0];
    for (const std::int64_t next : {32, 64, 128}) {
      const std::string number = std::to_string(convs_.size() + 1);
      const auto options = torch::nn::Conv2dOptions(channels, next, 3).padding(1);
      convs_.push_back(register_module("conv" + number, torch::nn::Conv2d(options)));
      norms_.push_back(register_module("norm" + number, torch::nn::BatchNorm2d(next)));
      channels = next;
    }
    const std::int64_t pixels = (config.input[1] >> pools) * (config.input[2] >> pools);
    full_ = register_module("full", torch::nn::Linear(channels * pixels, 96));
    output_ = register_module("output", torch::nn::Linear(96, config.outputs));
  }

  torch::Tensor forward(torch::Tensor rows) override {
    for (std::size_t i = 0; i < convs_.size(); ++i) {
      rows = torch::relu(torch::max_pool2d(norms_[i](convs_[i](rows)), 2));
    }
    return output_(torch::relu(full_(rows.flatten(1))));
  }

  std::vector<torch::nn::Conv2d> convs_;
  std::vector<torch::nn::BatchNorm2d> norms_;
  torch::nn::Linear full_{nullptr};
  torch::nn::Linear output_{nullptr};
};

Result<std::unique_ptr<Trainer>> make(const ModelConfig& config, Device& device) {
  if (Status good = check_model_config(config); !good) return good.error();
  const auto& input = config.input;
  if (input.size() != 3 || input[1] < (1 << pools) || input[2] < (1 << pools)) {
    return wrong_input(config, "[channels, height, width] with height and width of 8 or more");
  }
  return make_torch_trainer(
      config, device.computes_on(),
      [](const ModelConfig& c) -> std::shared_ptr<Network> { return std::make_shared<Cnn>(c); });
}

/// Memory per row: planes of the convolutions and their norms, pooled planes with their indices, and a
/// gradient of each.
ModelNeeds needs(const ModelConfig& config) {
  if (config.input.size() != 3) return {};
  const auto pixels = static_cast<double>(config.input[1] * config.input[2]);
  const auto outputs = static_cast<double>(config.outputs);
  const double planes = pixels * (32 + 64.0 / 4 + 128.0 / 16);
  // In double precision a convolution is a product over unfolded windows.
  const auto channels = static_cast<double>(config.input[0]);
  const double windows =
      config.scalar == Scalar::f64 ? pixels * (9 * channels + 9 * 32.0 / 4 + 9 * 64.0 / 16) : 0;
  const auto full = 128 * static_cast<double>((config.input[1] >> pools) * (config.input[2] >> pools));
  return {96 * full + 97 * outputs,
          6 * planes + windows + static_cast<double>(columns_of(config)) + 5 * (96 + outputs)};
}

}  // namespace

extern const ModelEntry model_cnn;
const ModelEntry model_cnn{
    .name = "cnn",
    .help = "three convolutional layers with batch norm, for images such as 3 x 32 x 32",
    .make = make,
    .needs = needs,
    .linear_last = true};

}  // namespace rivulet::devices
