#include "devices/torch/torch_trainer.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <new>
#include <string>
#include <utility>

#include "core/check.h"
#include "devices/host_memory.h"
#include "devices/model_support.h"
#include "devices/numbers.h"

namespace rivulet::devices {
namespace {

/// Rows of one forward pass in evaluation: bounds its memory whatever the size of the set.
constexpr std::size_t evaluation_rows = 256;

/// The door: nothing that the library throws leaves this file.
template <class T, class Body>
Result<T> guarded(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::unavailable, "LibTorch: out of memory"};
  } catch (const c10::Error& e) {
    const std::string words = e.what_without_backtrace();
    const bool memory = words.find("allocate memory") != std::string::npos;
    return Error{memory ? ErrorCode::unavailable : ErrorCode::io, "LibTorch: " + words};
  } catch (const std::exception& e) {
    return Error{ErrorCode::io, std::string("LibTorch: ") + e.what()};
  }
}

torch::Dtype dtype_of(Scalar scalar) {
  return scalar == Scalar::f32 ? torch::kFloat32 : torch::kFloat64;
}

/// A named tensor of the module and where its numbers lie in the flat array.
struct BoundTensor {
  torch::Tensor tensor;
  torch::Tensor start;      ///< what the module made of it
  std::int64_t fan_in = 0;  ///< > 0: begins uniform in +-1/sqrt(fan_in)
  TensorSlot slot;
};

/// Module::to() would turn batch norm's integer count of batches into a number to average.
void convert(const torch::Tensor& tensor, Scalar scalar) {
  if (tensor.is_floating_point()) tensor.set_data(tensor.detach().to(dtype_of(scalar)));
}

torch::Tensor view_at(std::byte* base, const BoundTensor& bound) {
  const auto& tensor = bound.tensor;
  return torch::from_blob(base + bound.slot.begin * tensor.element_size(), bound.slot.shape,
                          tensor.options());
}

/// Appends the tensor to the end of a flat array of `used` numbers.
void append(std::vector<BoundTensor>& all, std::vector<TensorSlot>& slots, std::size_t& used,
            const std::string& name, const torch::Tensor& tensor, std::int64_t fan_in) {
  const auto count = static_cast<std::size_t>(tensor.numel());
  slots.push_back({name, tensor.sizes().vec(), used, count});
  all.push_back({tensor, tensor.detach().clone(), fan_in, slots.back()});
  used += count;
}

/// Fan-in of a weight, or of the weight beside a bias; 0 for tensors that are not drawn (batch norm's).
std::int64_t fan_in_of(const std::string& name,
                       const torch::OrderedDict<std::string, torch::Tensor>& parameters) {
  const std::string owner = name.substr(0, name.rfind('.') + 1);
  const torch::Tensor* weight = parameters.find(owner + "weight");
  return weight == nullptr || weight->dim() < 2 ? 0 : weight->numel() / weight->size(0);
}

/// Rows whose largest output is that of their class. By hand: the library's way takes four operators.
template <class T>
std::uint64_t count_largest(const torch::Tensor& outputs, const std::int64_t* classes) {
  const T* at = outputs.const_data_ptr<T>();
  const std::int64_t width = outputs.size(1);
  std::uint64_t correct = 0;
  for (std::int64_t row = 0; row < outputs.size(0); ++row, at += width)
    correct += std::max_element(at, at + width) - at == classes[row] ? 1U : 0U;
  return correct;
}

std::uint64_t count_correct(const torch::Tensor& outputs, const torch::Tensor& targets) {
  const torch::Tensor plain = outputs.contiguous();
  const std::int64_t* classes = targets.const_data_ptr<std::int64_t>();
  return plain.scalar_type() == torch::kFloat32 ? count_largest<float>(plain, classes)
                                                : count_largest<double>(plain, classes);
}

/// While it lives, this thread's convolutions and products are made in bfloat16, if `on`.
class Autocast {
 public:
  explicit Autocast(bool on) : on_(on) {
    if (!on_) return;
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, true);
  }
  ~Autocast() {
    if (!on_) return;
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();  // of this step's parameters; the next one's lie at the same places
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const bool on_;
};

/// The layout is taken on by everything behind. With one channel the bytes are the same.
torch::Tensor channels_last(const torch::Tensor& images) {
  if (images.size(1) != 1) return images.contiguous(torch::MemoryFormat::ChannelsLast);
  return images.view({images.size(0), images.size(2), images.size(3), 1}).permute({0, 3, 1, 2});
}

class TorchTrainer final : public Trainer {
 public:
  TorchTrainer(const ModelConfig& config, std::shared_ptr<Network> network);

  [[nodiscard]] const ModelLayout& layout() const noexcept override { return layout_; }
  Status initialize(ModelState& state, std::uint64_t seed) override;
  Result<StepReport> compute_gradients(const ModelState& state, const BatchView& batch,
                                       GradientView out) override;
  Result<ApplyReport> apply(ModelState& state, const GradientView& agreed, const SgdConfig& sgd,
                            double learning_rate_factor) override;
  Result<StepReport> evaluate(const ModelState& state, const BatchView& batch) override;
  Result<std::vector<float>> predict(const ModelState& state, const BatchView& batch) override;

 private:
  void enter(bool training);
  void bind_parameters(const ModelState& state);
  void bind_gradients(const GradientView& out);
  void bind_buffers(const GradientView& buffers);
  Status read(const BatchView& batch);
  torch::Tensor features_of(const BatchView& batch, std::size_t first, std::size_t rows) const;
  torch::Tensor targets_of(const BatchView& batch, std::size_t first, std::size_t rows);
  torch::Tensor loss_of(const torch::Tensor& outputs, const torch::Tensor& targets) const;
  void report_on(const torch::Tensor& outputs, const torch::Tensor& targets, const torch::Tensor& loss,
                 StepReport& report) const;
  torch::Tensor forward_to_train(const torch::Tensor& features);
  StepReport train_on(const BatchView& batch, const GradientView& gradient);
  void forward_in_blocks(const ModelState& state, const BatchView& batch,
                         const std::function<void(const torch::Tensor&, std::size_t, std::size_t)>& use);

  // constant
  ModelConfig config_;
  ModelLayout layout_;
  // scratch: the module, and whose arrays its tensors are views of now
  std::shared_ptr<Network> network_;
  std::vector<BoundTensor> parameters_;
  std::vector<BoundTensor> buffers_;
  const std::byte* bound_parameters_ = nullptr;
  const std::byte* bound_gradients_ = nullptr;
  const std::byte* bound_buffers_ = nullptr;
  std::vector<std::int64_t> classes_;
};

TorchTrainer::TorchTrainer(const ModelConfig& config, std::shared_ptr<Network> network)
    : config_(config), network_(std::move(network)) {
  layout_.scalar = config.scalar;
  for (const torch::Tensor& parameter : network_->parameters()) convert(parameter, config.scalar);
  for (const torch::Tensor& buffer : network_->buffers()) convert(buffer, config.scalar);
  const auto named = network_->named_parameters();
  for (const auto& item : named) {
    append(parameters_, layout_.parameter_slots, layout_.parameters, item.key(), item.value(),
           fan_in_of(item.key(), named));
  }
  for (const auto& item : network_->named_buffers()) {
    if (!item.value().is_floating_point()) continue;  // batch norm's count of batches: its momentum is fixed
    append(buffers_, layout_.buffer_slots, layout_.buffers, item.key(), item.value(), 0);
  }
}

/// Before any use of the library by this thread: OpenMP keeps the number of threads per thread.
void TorchTrainer::enter(bool training) {
  if (at::get_num_threads() != config_.threads) at::set_num_threads(config_.threads);
  if (network_->is_training() != training) network_->train(training);
}

void TorchTrainer::bind_parameters(const ModelState& state) {
  RIVULET_CHECK(state.layout().scalar == layout_.scalar && state.layout().parameters == layout_.parameters &&
                    state.layout().buffers == layout_.buffers,
                "a state of another model");
  std::byte* base = state.parameters().host_bytes().data();
  if (base == bound_parameters_) return;
  for (BoundTensor& p : parameters_) p.tensor.set_data(view_at(base, p));
  bound_parameters_ = base;
}

void TorchTrainer::bind_gradients(const GradientView& out) {
  std::byte* base = out.host_bytes().data();
  if (base == bound_gradients_) return;
  for (BoundTensor& p : parameters_) p.tensor.mutable_grad() = view_at(base, p).requires_grad_(false);
  bound_gradients_ = base;
}

void TorchTrainer::bind_buffers(const GradientView& buffers) {
  std::byte* base = buffers.host_bytes().data();
  if (base == bound_buffers_) return;
  for (BoundTensor& b : buffers_) b.tensor.set_data(view_at(base, b));
  bound_buffers_ = base;
}

Status TorchTrainer::initialize(ModelState& state, std::uint64_t seed) {
  return guarded<std::monostate>([&]() -> Status {
    const torch::NoGradGuard no_grad;
    enter(false);
    bind_parameters(state);
    bind_buffers(state.buffers());
    Rng rng = Rng::derive(seed, "model");
    for (BoundTensor& p : parameters_) {
      if (p.fan_in > 0) {
        const GradientView numbers = state.parameters().slice(p.slot.begin, p.slot.count);
        fill_uniform(numbers, 1.0 / std::sqrt(static_cast<double>(p.fan_in)), rng);
      } else {
        p.tensor.copy_(p.start);
      }
    }
    for (BoundTensor& b : buffers_) b.tensor.copy_(b.start);
    fill_zero(state.momentum());
    return ok();
  });
}

Status TorchTrainer::read(const BatchView& batch) {
  check_batch(batch, config_);
  return config_.loss == Loss::cross_entropy ? read_classes(batch, config_.outputs, classes_) : ok();
}

/// The batch itself in float32, not a copy, unless images of several channels lie plane by plane.
torch::Tensor TorchTrainer::features_of(const BatchView& batch, std::size_t first, std::size_t rows) const {
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(rows)};
  shape.insert(shape.end(), config_.input.begin(), config_.input.end());
  auto* data = const_cast<float*>(batch.features.data() + first * columns_of(config_));
  const torch::Tensor plain = torch::from_blob(data, shape, torch::kFloat32).to(dtype_of(config_.scalar));
  // In double precision there is no kernel for the other layout.
  const bool images = config_.input.size() == 3 && config_.scalar == Scalar::f32;
  return images && config_.memory_format == MemoryFormat::channels_last ? channels_last(plain) : plain;
}

torch::Tensor TorchTrainer::targets_of(const BatchView& batch, std::size_t first, std::size_t rows) {
  const auto n = static_cast<std::int64_t>(rows);
  if (config_.loss == Loss::cross_entropy)
    return torch::from_blob(classes_.data() + first, {n}, torch::kInt64);
  auto* data = const_cast<float*>(batch.targets.data() + first * static_cast<std::size_t>(config_.outputs));
  return torch::from_blob(data, {n, config_.outputs}, torch::kFloat32).to(dtype_of(config_.scalar));
}

torch::Tensor TorchTrainer::loss_of(const torch::Tensor& outputs, const torch::Tensor& targets) const {
  if (config_.loss == Loss::cross_entropy) return torch::nn::functional::cross_entropy(outputs, targets);
  return torch::nn::functional::mse_loss(outputs, targets);
}

void TorchTrainer::report_on(const torch::Tensor& outputs, const torch::Tensor& targets,
                             const torch::Tensor& loss, StepReport& report) const {
  const torch::NoGradGuard no_grad;
  const auto rows = static_cast<std::uint64_t>(outputs.size(0));
  report.rows += rows;
  report.loss_sum += loss.item<double>() * static_cast<double>(rows);
  if (config_.loss == Loss::cross_entropy) report.correct += count_correct(outputs, targets);
}

torch::Tensor TorchTrainer::forward_to_train(const torch::Tensor& features) {
  const Autocast autocast(config_.autocast_bfloat16);
  return network_->forward(features).to(dtype_of(config_.scalar));
}

/// Forward and backward; gradients are added to what `gradient` holds.
StepReport TorchTrainer::train_on(const BatchView& batch, const GradientView& gradient) {
  StepReport report;
  const torch::Tensor outputs = forward_to_train(features_of(batch, 0, batch.rows));
  const torch::Tensor targets = targets_of(batch, 0, batch.rows);
  const torch::Tensor loss = loss_of(outputs, targets);
  loss.backward();
  report_on(outputs, targets, loss, report);
  report.gradient_norm2 = norm2(gradient);
  return report;
}

Result<StepReport> TorchTrainer::compute_gradients(const ModelState& state, const BatchView& batch,
                                                   GradientView out) {
  RIVULET_CHECK(out.count == layout_.contribution() && out.scalar == layout_.scalar,
                "a contribution of another model");
  if (Status good = read(batch); !good) return good.error();
  const GradientView gradient = out.slice(0, layout_.parameters);
  const GradientView buffers = out.slice(layout_.parameters, layout_.buffers);
  fill_zero(gradient);
  copy_host_numbers(state.buffers(), buffers);  // the forward pass moves these, not the state's
  if (batch.rows == 0) return StepReport{};
  return guarded<StepReport>([&]() -> Result<StepReport> {
    enter(true);
    bind_parameters(state);
    bind_gradients(gradient);
    bind_buffers(buffers);
    StepReport report = train_on(batch, gradient);
    report.finite = std::isfinite(report.loss_sum) && std::isfinite(report.gradient_norm2) &&
                    std::isfinite(norm2(buffers));
    return report;
  });
}

Result<ApplyReport> TorchTrainer::apply(ModelState& state, const GradientView& agreed, const SgdConfig& sgd,
                                        double learning_rate_factor) {
  return sgd_step(state, agreed, sgd, learning_rate_factor);
}

void TorchTrainer::forward_in_blocks(
    const ModelState& state, const BatchView& batch,
    const std::function<void(const torch::Tensor&, std::size_t, std::size_t)>& use) {
  const torch::NoGradGuard no_grad;
  enter(false);
  bind_parameters(state);
  bind_buffers(state.buffers());
  for (std::size_t first = 0; first < batch.rows; first += evaluation_rows) {
    const std::size_t rows = std::min(evaluation_rows, batch.rows - first);
    use(network_->forward(features_of(batch, first, rows)), first, rows);
  }
}

Result<StepReport> TorchTrainer::evaluate(const ModelState& state, const BatchView& batch) {
  if (Status good = read(batch); !good) return good.error();
  return guarded<StepReport>([&]() -> Result<StepReport> {
    StepReport report;
    forward_in_blocks(state, batch, [&](const torch::Tensor& outputs, std::size_t first, std::size_t rows) {
      const torch::Tensor targets = targets_of(batch, first, rows);
      report_on(outputs, targets, loss_of(outputs, targets), report);
    });
    report.finite = std::isfinite(report.loss_sum);
    return report;
  });
}

Result<std::vector<float>> TorchTrainer::predict(const ModelState& state, const BatchView& batch) {
  return guarded<std::vector<float>>([&]() -> Result<std::vector<float>> {
    std::vector<float> all;
    all.reserve(batch.rows * static_cast<std::size_t>(config_.outputs));
    forward_in_blocks(state, batch, [&](const torch::Tensor& outputs, std::size_t, std::size_t) {
      const torch::Tensor plain = outputs.to(torch::kFloat32).contiguous();
      all.insert(all.end(), plain.data_ptr<float>(), plain.data_ptr<float>() + plain.numel());
    });
    return all;
  });
}

}  // namespace

Result<std::unique_ptr<Trainer>> make_torch_trainer(const ModelConfig& config, BuildNetwork build) {
  if (Status good = check_model_config(config); !good) return good.error();
  return guarded<std::unique_ptr<Trainer>>([&]() -> Result<std::unique_ptr<Trainer>> {
    return std::unique_ptr<Trainer>(std::make_unique<TorchTrainer>(config, build(config)));
  });
}

}  // namespace rivulet::devices
