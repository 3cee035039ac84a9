#include "devices/model_support.h"
#include "devices/torch/torch_trainer.h"

namespace rivulet::devices {
namespace {

/// Rows of any shape, flattened; hidden layers of model.hidden, then the outputs, to which a linear layer
/// over the features adds if model.skip.
struct Mlp final : Network {
  explicit Mlp(const ModelConfig& config) : tanh_(config.activation == "tanh") {
    const auto columns = static_cast<std::int64_t>(columns_of(config));
    auto width = columns;
    for (const std::int64_t next : config.hidden) {
      hidden_.push_back(
          register_module("hidden" + std::to_string(hidden_.size()), torch::nn::Linear(width, next)));
      width = next;
    }
    if (config.skip) {
      skip_ = register_module(
          "skip", torch::nn::Linear(torch::nn::LinearOptions(columns, config.outputs).bias(false)));
      torch::nn::init::zeros_(skip_->weight);
    }
    output_ = register_module("output", torch::nn::Linear(width, config.outputs));
  }

  torch::Tensor forward(torch::Tensor rows) override {
    rows = rows.flatten(1);
    const torch::Tensor features = rows;
    for (auto& layer : hidden_) rows = tanh_ ? torch::tanh(layer(rows)) : torch::relu(layer(rows));
    rows = output_(rows);
    return skip_ ? rows + skip_(features) : rows;
  }

  bool tanh_;
  std::vector<torch::nn::Linear> hidden_;
  torch::nn::Linear skip_{nullptr};
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
  if (config.skip && config.hidden.empty())
    return Error{ErrorCode::invalid_config, "model.mlp.skip needs a hidden layer to pass"};
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
  if (config.skip) {
    const auto outputs = static_cast<double>(config.outputs);
    all.parameters += static_cast<double>(columns_of(config)) * outputs;
    all.per_row += 3 * outputs;
  }
  return all;
}

}  // namespace

extern const ModelEntry model_mlp;
const ModelEntry model_mlp{
    "mlp",   "fully connected layers over rows of any shape: model.mlp = { hidden, activation, skip }",
    make,    needs,
    nullptr, true,
    true};

}  // namespace rivulet::devices
