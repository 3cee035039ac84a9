#pragma once
// Only files of devices/torch and devices/model/torch include this header: it brings LibTorch.
#include <torch/torch.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "core/rng.h"
#include "devices/model_state.h"
#include "devices/torch/torch_trainer.h"

namespace rivulet::devices {

/// A named tensor of a network and where its numbers lie in the flat array.
struct BoundTensor {
  torch::Tensor tensor;
  torch::Tensor start;      ///< what the module made of it
  std::int64_t fan_in = 0;  ///< > 0: begins uniform in +-1/sqrt(fan_in)
  TensorSlot slot;
};

/// Where the numbers of a network are while it computes. The host's arrays are what counts before and after
/// a pass: a ModelState's, and the contribution's. Owner: a trainer; its thread.
class NetworkNumbers {
 public:
  virtual ~NetworkNumbers() = default;
  NetworkNumbers(const NetworkNumbers&) = delete;
  NetworkNumbers& operator=(const NetworkNumbers&) = delete;

  [[nodiscard]] const ModelLayout& layout() const noexcept { return layout_; }
  /// Where rows must be for a pass.
  [[nodiscard]] virtual torch::Device place() const { return torch::kCPU; }
  /// Parameters and buffers of `state` begin as the seed draws them.
  void initialize(ModelState& state, std::uint64_t seed) const;
  /// Parameters are the state's, gradients are 0, buffers begin as the state's. `out` is [P + B].
  virtual void begin_training(const ModelState& state, const GradientView& out) = 0;
  /// Behind the backward pass: `out` holds gradient and buffers, and everything that was asked of the place
  /// is done.
  virtual void end_training(const GradientView& out) = 0;
  /// Parameters and buffers are the state's. Forward only.
  virtual void begin_evaluation(const ModelState& state) = 0;

 protected:
  /// Takes the tensors' names and shapes, in config.scalar.
  NetworkNumbers(Network& network, const ModelConfig& config);
  [[nodiscard]] GradientView gradient_of(const GradientView& out) const {
    return out.slice(0, layout_.parameters);
  }
  [[nodiscard]] GradientView buffers_of(const GradientView& out) const {
    return out.slice(layout_.parameters, layout_.buffers);
  }
  void check_fits(const ModelState& state) const;

  ModelLayout layout_;
  std::vector<BoundTensor> parameters_;
  std::vector<BoundTensor> buffers_;
};

/// The network's tensors are views of the host's arrays: nothing is gathered or scattered; another state or
/// contribution only moves the views (about 1 us per tensor).
std::unique_ptr<NetworkNumbers> view_numbers(Network& network, const ModelConfig& config);

/// The network's tensors are views of arrays in the memory of `place`, a GPU's; they are copied there before
/// a pass and back behind it, asynchronously where the host's memory is pinned. 2 P + B numbers there. Throws
/// what the library throws. With the host as place (for tests) the same on the host.
std::unique_ptr<NetworkNumbers> copy_numbers(Network& network, const ModelConfig& config,
                                             torch::Device place);

torch::Dtype dtype_of(Scalar scalar);

}  // namespace rivulet::devices
