#pragma once
// Only files of devices/torch and devices/model/torch include this header: it includes LibTorch.
#include <torch/torch.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "core/rng.h"
#include "devices/model_state.h"
#include "devices/torch/torch_trainer.h"

namespace rivulet::devices {

/// A named tensor of a network and its place in the flat array.
struct BoundTensor {
  torch::Tensor tensor;
  torch::Tensor start;      ///< value from the module
  std::int64_t fan_in = 0;  ///< > 0: starts uniform in +-1/sqrt(fan_in)
  TensorSlot slot;
};

/// Location of a network's values during a pass. Before and after a pass the host's arrays hold the values:
/// those of a ModelState and a contribution. Owner: a trainer; its thread.
class NetworkNumbers {
 public:
  virtual ~NetworkNumbers() = default;
  NetworkNumbers(const NetworkNumbers&) = delete;
  NetworkNumbers& operator=(const NetworkNumbers&) = delete;

  [[nodiscard]] const ModelLayout& layout() const noexcept { return layout_; }
  /// Where the rows of a pass must be.
  [[nodiscard]] virtual torch::Device place() const { return torch::kCPU; }
  /// Sets parameters and buffers of `state` to their start values for the seed.
  void initialize(ModelState& state, std::uint64_t seed) const;
  /// Reads parameters and start values of buffers from the state, and zeroes the gradients. `out` is [P + B].
  virtual void begin_training(const ModelState& state, const GradientView& out) = 0;
  /// Call after the backward pass. Then `out` holds gradient and buffers, and all work at the place is
  /// complete.
  virtual void end_training(const GradientView& out) = 0;
  /// Reads parameters and buffers from the state, for forward passes only.
  virtual void begin_evaluation(const ModelState& state) = 0;

 protected:
  /// Reads the tensors' names and shapes and converts them to config.scalar.
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

/// The network's tensors are views of the host's arrays: nothing is gathered or scattered. A change of state
/// or contribution only moves the views (about 1 us per tensor).
std::unique_ptr<NetworkNumbers> view_numbers(Network& network, const ModelConfig& config);

/// The network's tensors are views of arrays in the memory of `place`, a GPU. Values are copied there before
/// a pass and back after it, asynchronously if host memory is pinned. Memory at the place: 2 P + B elements.
/// Throws the library's exceptions. Tests use the host as place.
std::unique_ptr<NetworkNumbers> copy_numbers(Network& network, const ModelConfig& config,
                                             torch::Device place);

torch::Dtype dtype_of(Scalar scalar);

}  // namespace rivulet::devices
