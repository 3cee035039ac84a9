#include "devices/torch/torch_trainer.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "core/check.h"
#include "devices/host_memory.h"
#include "devices/model_support.h"
#include "devices/numbers.h"
#include "devices/torch/guarded.h"
#include "devices/torch/network_numbers.h"

namespace rivulet::devices {
namespace {

/// Rows of one forward pass in evaluation: bounds its memory for any size of the set.
constexpr std::size_t evaluation_rows = 256;

/// Passes on a GPU have a multiple of this many rows.
constexpr std::int64_t bucket_rows = 16;

/// Appends the predicted class of each row, the index of its largest output. The library would need four
/// operators.
template <class T>
void add_largest(const torch::Tensor& outputs, std::vector<float>& answers) {
  const T* at = outputs.const_data_ptr<T>();
  const std::int64_t width = outputs.size(1);
  for (std::int64_t row = 0; row < outputs.size(0); ++row, at += width)
    answers.push_back(static_cast<float>(std::max_element(at, at + width) - at));
}

void add_classes(const torch::Tensor& outputs, std::vector<float>& answers) {
  const torch::Tensor plain = outputs.to(torch::kCPU).contiguous();
  if (plain.scalar_type() == torch::kFloat32)
    add_largest<float>(plain, answers);
  else
    add_largest<double>(plain, answers);
}

/// Appends the outputs of each row.
void add_outputs(const torch::Tensor& outputs, std::vector<float>& answers) {
  const torch::Tensor plain = outputs.to(torch::kCPU, torch::kFloat32).contiguous();
  answers.insert(answers.end(), plain.const_data_ptr<float>(), plain.const_data_ptr<float>() + plain.numel());
}

/// While alive, runs this thread's convolutions and products in bfloat16 if `on`.
class Autocast {
 public:
  Autocast(bool on, torch::DeviceType place) : on_(on), place_(place) {
    if (!on_) return;
    at::autocast::set_autocast_dtype(place_, at::kBFloat16);
    at::autocast::set_autocast_enabled(place_, true);
  }
  ~Autocast() {
    if (!on_) return;
    at::autocast::set_autocast_enabled(place_, false);
    at::autocast::clear_cache();  // holds this step's parameters; the next step's have the same addresses
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const bool on_;
  const torch::DeviceType place_;
};

/// All later operators keep the layout. With one channel the bytes are the same.
torch::Tensor channels_last(const torch::Tensor& images) {
  if (images.size(1) != 1) return images.contiguous(torch::MemoryFormat::ChannelsLast);
  return images.view({images.size(0), images.size(2), images.size(3), 1}).permute({0, 3, 1, 2});
}

class TorchTrainer final : public Trainer {
 public:
  TorchTrainer(const ModelConfig& config, const ComputePlace& place, std::shared_ptr<Network> network);

  [[nodiscard]] const ModelLayout& layout() const noexcept override { return numbers_->layout(); }
  Status initialize(ModelState& state, std::uint64_t seed) override;
  Result<StepReport> compute_gradients(const ModelState& state, const BatchView& batch,
                                       GradientView out) override;
  Result<StepReport> evaluate(const ModelState& state, const BatchView& batch) override;
  Result<std::vector<float>> predict(const ModelState& state, const BatchView& batch) override;

 private:
  void enter(bool training);
  Status read(const BatchView& batch);
  [[nodiscard]] std::int64_t rows_to_compute(std::size_t rows) const;
  torch::Tensor features_of(const BatchView& batch, std::size_t first, std::size_t rows) const;
  torch::Tensor targets_of(const BatchView& batch, std::size_t first, std::size_t rows);
  torch::Tensor loss_of(const torch::Tensor& outputs, const torch::Tensor& targets) const;
  void report_on(const torch::Tensor& outputs, std::size_t first, const torch::Tensor& loss,
                 StepReport& report);
  torch::Tensor weighted_loss(const torch::Tensor& outputs, const torch::Tensor& targets,
                              std::span<const float> class_weights) const;
  torch::Tensor forward_to_train(const BatchView& batch);
  StepReport train_on(const BatchView& batch, const GradientView& out);
  void forward_in_blocks(const ModelState& state, const BatchView& batch,
                         const std::function<void(const torch::Tensor&, std::size_t, std::size_t)>& use);

  // constant
  ModelConfig config_;
  bool in_buckets_;
  // scratch
  std::shared_ptr<Network> network_;
  std::unique_ptr<NetworkNumbers> numbers_;
  std::vector<std::int64_t> classes_;
  std::vector<float> answers_;
};

torch::Device torch_place(const ComputePlace& place) {
  if (place.gpu < 0) return torch::kCPU;
  return {torch::kCUDA, static_cast<torch::DeviceIndex>(place.gpu)};
}

TorchTrainer::TorchTrainer(const ModelConfig& config, const ComputePlace& place,
                           std::shared_ptr<Network> network)
    : config_(config),
      network_(std::move(network)),
      numbers_(place.copies_arrays ? copy_numbers(*network_, config, torch_place(place))
                                   : view_numbers(*network_, config)) {
  // Padding rows are allowed only where rows do not affect each other.
  in_buckets_ = place.copies_arrays && layout().buffers == 0 && !network_->begins_as_made();
}

/// Call before any use of the library by this thread: OpenMP keeps the number of threads per thread.
void TorchTrainer::enter(bool training) {
  if (at::get_num_threads() != config_.threads) at::set_num_threads(config_.threads);
  if (network_->is_training() != training) network_->train(training);
}

Status TorchTrainer::initialize(ModelState& state, std::uint64_t seed) {
  return guarded<std::monostate>([&]() -> Status {
    enter(false);
    numbers_->initialize(state, seed);
    return ok();
  });
}

Status TorchTrainer::read(const BatchView& batch) {
  check_batch(batch, config_);
  answers_.clear();
  if (config_.loss != Loss::cross_entropy) return ok();
  return read_classes(batch, config_.outputs, classes_);
}

/// A GPU chooses kernels by shape, and its allocator keeps blocks by size. Rounding to few sizes avoids the
/// cost of every new size.
std::int64_t TorchTrainer::rows_to_compute(std::size_t rows) const {
  const auto n = static_cast<std::int64_t>(rows);
  return in_buckets_ ? (n + bucket_rows - 1) / bucket_rows * bucket_rows : n;
}

/// In float32 returns the batch itself, without a copy. Exceptions: images of several channels stored plane
/// by plane, and networks on a different device.
torch::Tensor TorchTrainer::features_of(const BatchView& batch, std::size_t first, std::size_t rows) const {
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(rows)};
  shape.insert(shape.end(), config_.input.begin(), config_.input.end());
  auto* data = const_cast<float*>(batch.features.data() + first * columns_of(config_));
  const auto options = torch::TensorOptions().dtype(dtype_of(config_.scalar)).device(numbers_->place());
  torch::Tensor plain = torch::from_blob(data, shape, torch::kFloat32).to(options, /*non_blocking=*/true);
  if (const auto more = rows_to_compute(rows) - shape[0]; more > 0) {
    shape[0] = more;
    plain = torch::cat({plain, torch::zeros(shape, options)});
  }
  // There is no kernel in double precision for channels_last.
  const bool images = config_.input.size() == 3 && config_.scalar == Scalar::f32;
  return images && config_.memory_format == MemoryFormat::channels_last ? channels_last(plain) : plain;
}

torch::Tensor TorchTrainer::targets_of(const BatchView& batch, std::size_t first, std::size_t rows) {
  const auto n = static_cast<std::int64_t>(rows);
  if (config_.loss == Loss::cross_entropy)
    return torch::from_blob(classes_.data() + first, {n}, torch::kInt64).to(numbers_->place(), true);
  auto* data = const_cast<float*>(batch.targets.data() + first * static_cast<std::size_t>(config_.outputs));
  const auto options = torch::TensorOptions().dtype(dtype_of(config_.scalar)).device(numbers_->place());
  return torch::from_blob(data, {n, config_.outputs}, torch::kFloat32).to(options, /*non_blocking=*/true);
}

torch::Tensor TorchTrainer::loss_of(const torch::Tensor& outputs, const torch::Tensor& targets) const {
  if (config_.loss == Loss::cross_entropy) return torch::nn::functional::cross_entropy(outputs, targets);
  return torch::nn::functional::mse_loss(outputs, targets);
}

/// Loss for the gradient, with rows weighted by class.
torch::Tensor TorchTrainer::weighted_loss(const torch::Tensor& outputs, const torch::Tensor& targets,
                                          std::span<const float> class_weights) const {
  auto* data = const_cast<float*>(class_weights.data());
  const torch::Tensor weights =
      torch::from_blob(data, {config_.outputs}, torch::kFloat32).to(outputs.options().requires_grad(false));
  using Options = torch::nn::functional::CrossEntropyFuncOptions;
  const torch::Tensor sum = torch::nn::functional::cross_entropy(
      outputs, targets, Options().weight(weights).reduction(torch::kSum));
  return sum / static_cast<double>(outputs.size(0));
}

/// Adds the results of `outputs` to the report. Their rows begin at `first`.
void TorchTrainer::report_on(const torch::Tensor& outputs, std::size_t first, const torch::Tensor& loss,
                             StepReport& report) {
  const torch::NoGradGuard no_grad;
  const auto rows = static_cast<std::uint64_t>(outputs.size(0));
  report.rows += rows;
  report.loss_sum += loss.item<double>() * static_cast<double>(rows);
  if (config_.loss == Loss::cross_entropy) {
    const std::size_t before = answers_.size();
    add_classes(outputs, answers_);
    for (std::size_t row = 0; row < rows; ++row)
      report.correct += static_cast<std::int64_t>(answers_[before + row]) == classes_[first + row] ? 1 : 0;
  }
}

torch::Tensor TorchTrainer::forward_to_train(const BatchView& batch) {
  const Autocast autocast(config_.autocast_bfloat16, numbers_->place().type());
  const auto rows = static_cast<std::int64_t>(batch.rows);
  const torch::Tensor outputs =
      network_->forward(features_of(batch, 0, batch.rows)).to(dtype_of(config_.scalar));
  return outputs.size(0) == rows ? outputs : outputs.narrow(0, 0, rows);
}

/// Forward and backward pass; gradients add to zeros.
StepReport TorchTrainer::train_on(const BatchView& batch, const GradientView& out) {
  StepReport report;
  const torch::Tensor outputs = forward_to_train(batch);
  const torch::Tensor targets = targets_of(batch, 0, batch.rows);
  const torch::Tensor loss = loss_of(outputs, targets);
  if (batch.class_weights.empty())
    loss.backward();
  else
    weighted_loss(outputs, targets, batch.class_weights).backward();
  numbers_->end_training(out);
  report_on(outputs, 0, loss, report);
  if (config_.loss != Loss::cross_entropy) add_outputs(outputs.detach(), answers_);
  report.answers = answers_;
  report.gradient_norm2 = norm2(out.slice(0, layout().parameters));
  return report;
}

Result<StepReport> TorchTrainer::compute_gradients(const ModelState& state, const BatchView& batch,
                                                   GradientView out) {
  RIVULET_CHECK(out.count == layout().contribution() && out.scalar == layout().scalar,
                "the contribution belongs to a different model");
  if (Status good = read(batch); !good) return good.error();
  const GradientView buffers = out.slice(layout().parameters, layout().buffers);
  if (batch.rows == 0) {
    fill_zero(out.slice(0, layout().parameters));
    copy_host_numbers(state.buffers(), buffers);
    return StepReport{};
  }
  return guarded<StepReport>([&]() -> Result<StepReport> {
    enter(true);
    numbers_->begin_training(state, out);
    StepReport report = train_on(batch, out);
    report.finite = std::isfinite(report.loss_sum) && std::isfinite(report.gradient_norm2) &&
                    std::isfinite(norm2(buffers));
    return report;
  });
}

void TorchTrainer::forward_in_blocks(
    const ModelState& state, const BatchView& batch,
    const std::function<void(const torch::Tensor&, std::size_t, std::size_t)>& use) {
  const torch::NoGradGuard no_grad;
  enter(false);
  numbers_->begin_evaluation(state);
  for (std::size_t first = 0; first < batch.rows; first += evaluation_rows) {
    const std::size_t rows = std::min(evaluation_rows, batch.rows - first);
    const torch::Tensor outputs = network_->forward(features_of(batch, first, rows));
    use(outputs.narrow(0, 0, static_cast<std::int64_t>(rows)), first, rows);
  }
}

Result<StepReport> TorchTrainer::evaluate(const ModelState& state, const BatchView& batch) {
  if (Status good = read(batch); !good) return good.error();
  return guarded<StepReport>([&]() -> Result<StepReport> {
    StepReport report;
    forward_in_blocks(state, batch, [&](const torch::Tensor& outputs, std::size_t first, std::size_t rows) {
      report_on(outputs, first, loss_of(outputs, targets_of(batch, first, rows)), report);
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
      add_outputs(outputs, all);
    });
    return all;
  });
}

}  // namespace

Result<std::unique_ptr<Trainer>> make_torch_trainer(const ModelConfig& config, const ComputePlace& place,
                                                    const BuildNetwork& build) {
  if (Status good = check_model_config(config); !good) return good.error();
  return guarded<std::unique_ptr<Trainer>>([&]() -> Result<std::unique_ptr<Trainer>> {
    return std::unique_ptr<Trainer>(std::make_unique<TorchTrainer>(config, place, build(config)));
  });
}

}  // namespace rivulet::devices
