#include "devices/torch_mlp.h"

#include "devices/model_support.h"
#include "devices/torch/torch_trainer.h"

namespace rivulet::devices {
namespace {

/// Same names and order of parameters as devices/model/mlp.cpp.
struct Mlp final : Network {
  Mlp(const ModelConfig& config, const MlpShape& shape) : tanh_(shape.tanh) {
    const auto columns = static_cast<std::int64_t>(columns_of(config));
    auto width = columns;
    for (const std::int64_t next : shape.hidden) {
      hidden_.push_back(
          register_module("hidden" + std::to_string(hidden_.size()), torch::nn::Linear(width, next)));
      width = next;
    }
    if (shape.skip) {
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

Result<std::unique_ptr<Trainer>> make(const ModelConfig& config, const MlpShape& shape,
                                      const ComputePlace& place) {
  return make_torch_trainer(config, place, [&](const ModelConfig& c) -> std::shared_ptr<Network> {
    return std::make_shared<Mlp>(c, shape);
  });
}

}  // namespace

Result<std::unique_ptr<Trainer>> (*const make_torch_mlp)(const ModelConfig&, const MlpShape&,
                                                         const ComputePlace&) = &make;

}  // namespace rivulet::devices
