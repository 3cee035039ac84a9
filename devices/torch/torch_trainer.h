#pragma once
// Only files of devices/torch and devices/model/torch include this header: it brings LibTorch.
#include <torch/torch.h>

#include <memory>

#include "devices/trainer.h"

namespace rivulet::devices {

/// A network of a built-in model: rows [n, input...] to outputs [n, outputs]. Parameters called `weight` of
/// two dimensions or more, and the `bias` beside them, begin uniform in +-1/sqrt(fan in), PyTorch's default;
/// all others begin as the module made them.
struct Network : torch::nn::Module {
  virtual torch::Tensor forward(torch::Tensor rows) = 0;
};

using BuildNetwork = std::shared_ptr<Network> (*)(const ModelConfig&);

/// A Trainer around a network. The module's parameters and buffers are views of a ModelState's flat arrays
/// and its gradients are views of the contribution, so nothing is gathered or scattered; another state or
/// contribution only moves the views (about 1 us per tensor). On a CPU the bits depend on the inputs and the
/// number of threads only, as long as arrays lie on 64-byte boundaries, as a Device's do. Errors:
/// invalid_config (as check_model_config), io (the library refused, in its words).
Result<std::unique_ptr<Trainer>> make_torch_trainer(const ModelConfig& config, BuildNetwork build);

}  // namespace rivulet::devices
