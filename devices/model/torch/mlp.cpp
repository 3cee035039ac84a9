#include "devices/model_support.h"
#include "devices/torch/torch_trainer.h"

namespace rivulet::devices {
namespace {

/// Rows of any shape, flattened; hidden layers of model.hidden, then the outputs.
struct Mlp final : Network {
  explicit Mlp(const ModelConfig& config) : tanh_(config.activation == "tanh") {
    auto width = static_cast<std::int64_t>(columns_of(config));
    for (const std::int64_t next : config.hidden) {
      hidden_.push_back(
          register_module("hidden" + std::to_string(hidden_.size()), torch::nn::Linear(width, next)));
      width = next;
    }
    output_ = register_module("output", torch::nn::Linear(width, config.outputs));
  }

  torch::Tensor forward(torch::Tensor rows) override {
    rows = rows.flatten(1);
    for (auto& layer : hidden_) rows = tanh_ ? torch::tanh(layer(rows)) : torch::relu(layer(rows));
    return output_(rows);
  }

  bool tanh_;
  std::vector<torch::nn::Linear> hidden_;
  torch::nn::Linear output_{nullptr};
};

Result<std::unique_ptr<Trainer>> make(const ModelConfig& config, Device& device) {
  if (config.activation != "relu" && config.activation != "tanh") {
    return Error{ErrorCode::invalid_config,
                 "model.mlp.activation is \"" + config.activation + "\"; it must be relu or tanh"};
  }
  for (const std::int64_t width : config.hidden) {
    if (width >= 1) continue;
    return Error{ErrorCode::invalid_config,
                 "model.mlp.hidden holds " + std::to_string(width) + "; every layer needs at least 1 number"};
  }
  return make_torch_trainer(
      config, device.computes_on(),
      [](const ModelConfig& c) -> std::shared_ptr<Network> { return std::make_shared<Mlp>(c); });
}

/// A row keeps what each layer gives, before and after its activation, and a gradient of each.
ModelNeeds needs(const ModelConfig& config) {
  auto width = static_cast<double>(columns_of(config));
  ModelNeeds all{0, width};
  std::vector<std::int64_t> widths = config.hidden;
  widths.push_back(config.outputs);
  for (const std::int64_t layer : widths) {
    const auto next = static_cast<double>(layer);
    all.parameters += (width + 1) * next;
    all.per_row += 5 * next;
    width = next;
  }
  return all;
}

}  // namespace

extern const ModelEntry model_mlp;
const ModelEntry model_mlp{
    "mlp",   "fully connected layers over rows of any shape: model.mlp = { hidden, activation }",
    make,    needs,
    nullptr, true,
    true};

}  // namespace rivulet::devices
