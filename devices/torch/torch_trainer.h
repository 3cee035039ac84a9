#pragma once
// Only files of devices/torch and devices/model/torch include this header: it brings LibTorch.
#include <torch/torch.h>

#include <functional>
#include <memory>

#include "devices/trainer.h"

namespace rivulet::devices {

/// A network of a built-in model: rows [n, input...] to outputs [n, outputs]. Parameters called `weight` of
/// two dimensions or more, and the `bias` beside them, begin uniform in +-1/sqrt(fan in), PyTorch's default;
/// all others begin as the module made them.
struct Network : torch::nn::Module {
  virtual torch::Tensor forward(torch::Tensor rows) = 0;
  /// Its numbers begin as they came, all of them, whatever the seed.
  [[nodiscard]] virtual bool begins_as_made() const { return false; }
};

using BuildNetwork = std::function<std::shared_ptr<Network>(const ModelConfig&)>;

/// A Trainer around a network that computes at `place`. The module's tensors are views of flat arrays: on the
/// host of a ModelState's and the contribution's own, on a GPU of copies there (network_numbers.h). On a CPU
/// the bits depend on the inputs and the number of threads only, as long as arrays lie on 64-byte boundaries,
/// as a Device's do; on a GPU some kernels add in any order. Errors: invalid_config (as check_model_config),
/// io (the library refused, in its words), unavailable (out of memory).
Result<std::unique_ptr<Trainer>> make_torch_trainer(const ModelConfig& config, const ComputePlace& place,
                                                    const BuildNetwork& build);

}  // namespace rivulet::devices
