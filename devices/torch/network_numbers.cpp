#include "devices/torch/network_numbers.h"

#include <ATen/DeviceAccelerator.h>

#include <cmath>
#include <string>

#include "core/check.h"
#include "devices/host_memory.h"
#include "devices/model_support.h"

namespace rivulet::devices {
namespace {

/// Module::to() would make batch norm's integer count of batches a float to average.
void convert(const torch::Tensor& tensor, Scalar scalar) {
  if (tensor.is_floating_point()) tensor.set_data(tensor.detach().to(dtype_of(scalar)));
}

/// Returns a view of the tensor's values in a flat host array.
torch::Tensor view_at(std::byte* base, const BoundTensor& bound) {
  const auto& tensor = bound.tensor;
  return torch::from_blob(base + bound.slot.begin * tensor.element_size(), bound.slot.shape,
                          torch::TensorOptions().dtype(tensor.scalar_type()));
}

/// Appends the tensor to a flat array of `used` elements.
void append(std::vector<BoundTensor>& all, std::vector<TensorSlot>& slots, std::size_t& used,
            const std::string& name, const torch::Tensor& tensor, std::int64_t fan_in) {
  const auto count = static_cast<std::size_t>(tensor.numel());
  slots.push_back({name, tensor.sizes().vec(), used, count});
  all.push_back({tensor, tensor.detach().clone(), fan_in, slots.back()});
  used += count;
}

/// Returns the fan-in of a weight, or of a bias's weight; 0 for tensors without random values: batch norm's,
/// and weights that the network zeroed.
std::int64_t fan_in_of(const std::string& name,
                       const torch::OrderedDict<std::string, torch::Tensor>& parameters) {
  const std::string owner = name.substr(0, name.rfind('.') + 1);
  const torch::Tensor* weight = parameters.find(owner + "weight");
  if (weight == nullptr || weight->dim() < 2 || !weight->any().item<bool>()) return 0;
  return weight->numel() / weight->size(0);
}

class ViewedNumbers final : public NetworkNumbers {
 public:
  ViewedNumbers(Network& network, const ModelConfig& config) : NetworkNumbers(network, config) {}

  void begin_training(const ModelState& state, const GradientView& out) override {
    fill_zero(gradient_of(out));
    copy_host_numbers(state.buffers(), buffers_of(out));  // the forward pass changes these, not the state's
    show_parameters(state);
    show_gradients(gradient_of(out));
    show_buffers(buffers_of(out));
  }
  void end_training(const GradientView&) override {}
  void begin_evaluation(const ModelState& state) override {
    show_parameters(state);
    show_buffers(state.buffers());
  }

 private:
  void show_parameters(const ModelState& state) {
    check_fits(state);
    std::byte* base = state.parameters().host_bytes().data();
    if (base == shown_parameters_) return;
    for (BoundTensor& p : parameters_) p.tensor.set_data(view_at(base, p));
    shown_parameters_ = base;
  }
  void show_gradients(const GradientView& gradient) {
    std::byte* base = gradient.host_bytes().data();
    if (base == shown_gradients_) return;
    for (BoundTensor& p : parameters_) p.tensor.mutable_grad() = view_at(base, p).requires_grad_(false);
    shown_gradients_ = base;
  }
  void show_buffers(const GradientView& buffers) {
    std::byte* base = buffers.host_bytes().data();
    if (base == shown_buffers_) return;
    for (BoundTensor& b : buffers_) b.tensor.set_data(view_at(base, b));
    shown_buffers_ = base;
  }

  // scratch: arrays that the tensors view
  const std::byte* shown_parameters_ = nullptr;
  const std::byte* shown_gradients_ = nullptr;
  const std::byte* shown_buffers_ = nullptr;
};

/// A host array as a flat tensor.
torch::Tensor flat(const GradientView& numbers) {
  return torch::from_blob(numbers.host_bytes().data(), {static_cast<std::int64_t>(numbers.count)},
                          torch::TensorOptions().dtype(dtype_of(numbers.scalar)));
}

class CopiedNumbers final : public NetworkNumbers {
 public:
  CopiedNumbers(Network& network, const ModelConfig& config, torch::Device place)
      : NetworkNumbers(network, config),
        place_(place),
        parameter_copy_(array(layout_.parameters)),
        gradient_copy_(array(layout_.parameters)),
        buffer_copy_(array(layout_.buffers)) {
    if (!place_.is_cpu()) at::globalContext().setAllowTF32CuDNN(false);  // full float32 precision
    network.to(place_);
    for (BoundTensor& p : parameters_) {
      p.tensor.set_data(part(parameter_copy_, p.slot));
      p.tensor.mutable_grad() = part(gradient_copy_, p.slot).requires_grad_(false);
    }
    for (BoundTensor& b : buffers_) b.tensor.set_data(part(buffer_copy_, b.slot));
  }

  [[nodiscard]] torch::Device place() const override { return place_; }
  void begin_training(const ModelState& state, const GradientView&) override {
    begin_evaluation(state);
    gradient_copy_.zero_();
  }
  void end_training(const GradientView& out) override {
    const torch::NoGradGuard no_grad;
    flat(gradient_of(out)).copy_(gradient_copy_, /*non_blocking=*/true);
    flat(buffers_of(out)).copy_(buffer_copy_, /*non_blocking=*/true);
    wait();
  }
  void begin_evaluation(const ModelState& state) override {
    check_fits(state);
    const torch::NoGradGuard no_grad;
    parameter_copy_.copy_(flat(state.parameters()), /*non_blocking=*/true);
    buffer_copy_.copy_(flat(state.buffers()), /*non_blocking=*/true);
  }

 private:
  [[nodiscard]] torch::Tensor array(std::size_t numbers) const {
    return torch::zeros({static_cast<std::int64_t>(numbers)},
                        torch::TensorOptions().dtype(dtype_of(layout_.scalar)).device(place_));
  }
  static torch::Tensor part(const torch::Tensor& whole, const TensorSlot& slot) {
    return whole.narrow(0, static_cast<std::int64_t>(slot.begin), static_cast<std::int64_t>(slot.count))
        .view(slot.shape);
  }
  void wait() const {
    if (!place_.is_cpu()) at::accelerator::synchronizeDevice(place_.index());
  }

  const torch::Device place_;
  torch::Tensor parameter_copy_;  ///< [P], like gradient_copy_
  torch::Tensor gradient_copy_;
  torch::Tensor buffer_copy_;  ///< [B]
};

}  // namespace

NetworkNumbers::NetworkNumbers(Network& network, const ModelConfig& config) {
  const Scalar scalar = config.scalar;
  layout_.scalar = scalar;
  layout_.optimizer_arrays = config.optimizer_arrays;
  layout_.average_rows = config.average_rows;
  for (const torch::Tensor& parameter : network.parameters()) convert(parameter, scalar);
  for (const torch::Tensor& buffer : network.buffers()) convert(buffer, scalar);
  const auto named = network.named_parameters();
  for (const auto& item : named) {
    append(parameters_, layout_.parameter_slots, layout_.parameters, item.key(), item.value(),
           network.begins_as_made() ? 0 : fan_in_of(item.key(), named));
  }
  for (const auto& item : network.named_buffers()) {
    if (!item.value().is_floating_point()) {  // batch norm does not depend on it: its momentum is fixed
      if (item.key().ends_with("num_batches_tracked")) layout_.batch_counts.push_back(item.key());
      continue;
    }
    append(buffers_, layout_.buffer_slots, layout_.buffers, item.key(), item.value(), 0);
  }
}

void NetworkNumbers::check_fits(const ModelState& state) const {
  RIVULET_CHECK(state.layout().scalar == layout_.scalar && state.layout().parameters == layout_.parameters &&
                    state.layout().buffers == layout_.buffers,
                "the state belongs to a different model");
}

void NetworkNumbers::initialize(ModelState& state, std::uint64_t seed) const {
  check_fits(state);
  const torch::NoGradGuard no_grad;
  Rng rng = Rng::derive(seed, "model");
  std::byte* parameters = state.parameters().host_bytes().data();
  for (const BoundTensor& p : parameters_) {
    if (p.fan_in > 0) {
      const GradientView numbers = state.parameters().slice(p.slot.begin, p.slot.count);
      fill_uniform(numbers, 1.0 / std::sqrt(static_cast<double>(p.fan_in)), rng);
    } else {
      view_at(parameters, p).copy_(p.start);
    }
  }
  std::byte* buffers = state.buffers().host_bytes().data();
  for (const BoundTensor& b : buffers_) view_at(buffers, b).copy_(b.start);
  state.zero_optimizer();
}

torch::Dtype dtype_of(Scalar scalar) {
  return scalar == Scalar::f32 ? torch::kFloat32 : torch::kFloat64;
}

std::unique_ptr<NetworkNumbers> view_numbers(Network& network, const ModelConfig& config) {
  return std::make_unique<ViewedNumbers>(network, config);
}

std::unique_ptr<NetworkNumbers> copy_numbers(Network& network, const ModelConfig& config,
                                             torch::Device place) {
  return std::make_unique<CopiedNumbers>(network, config, place);
}

}  // namespace rivulet::devices
