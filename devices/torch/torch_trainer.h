#pragma once
// Only files of devices/torch and devices/model/torch include this header: it includes LibTorch.
#include <torch/torch.h>

#include <functional>
#include <memory>

#include "devices/trainer.h"

namespace rivulet::devices {

/// Network of a model. Maps rows [n, input...] to outputs [n, outputs]. Parameters called `weight` with two
/// or more dimensions, and their `bias`, start uniform in +-1/sqrt(fan in), PyTorch's default. All others
/// start as the module made them.
struct Network : torch::nn::Module {
  virtual torch::Tensor forward(torch::Tensor rows) = 0;
  /// Whether all values start as the module made them, for any seed.
  [[nodiscard]] virtual bool begins_as_made() const { return false; }
};

using BuildNetwork = std::function<std::shared_ptr<Network>(const ModelConfig&)>;

/// Makes a Trainer for a network that computes at `place`. The module's tensors are views of flat arrays: on
/// the host those of a ModelState and a contribution, on a GPU copies of them (network_numbers.h). On a CPU
/// the bits depend only on the inputs and the number of threads, if arrays lie on 64-byte boundaries, as a
/// Device's do. On a GPU some kernels add in varying order. Errors: invalid_config (as check_model_config),
/// io (with the library's message), unavailable (out of memory).
Result<std::unique_ptr<Trainer>> make_torch_trainer(const ModelConfig& config, const ComputePlace& place,
                                                    const BuildNetwork& build);

}  // namespace rivulet::devices
