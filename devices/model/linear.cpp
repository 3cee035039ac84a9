// y = W x + b with its own gradient. Needs no LibTorch, so it also runs under sanitizers and as ten thousand
// devices in one process. Parameters: weight [outputs, columns], then bias [outputs].
#include <cmath>

#include "core/check.h"
#include "devices/model/row_loss.h"
#include "devices/model_support.h"
#include "devices/numbers.h"
#include "devices/trainer.h"

namespace rivulet::devices {
namespace {

ModelLayout layout_of(const ModelConfig& config) {
  const std::size_t columns = columns_of(config);
  const auto outputs = static_cast<std::size_t>(config.outputs);
  ModelLayout layout;
  layout.scalar = config.scalar;
  layout.optimizer_arrays = config.optimizer_arrays;
  layout.average_rows = config.average_rows;
  layout.parameters = outputs * columns + outputs;
  layout.parameter_slots = {
      {"weight", {config.outputs, static_cast<std::int64_t>(columns)}, 0, outputs * columns},
      {"bias", {config.outputs}, outputs * columns, outputs},
  };
  return layout;
}

/// T is the type of parameters, gradient and sums.
template <class T>
class LinearTrainer final : public Trainer {
 public:
  explicit LinearTrainer(const ModelConfig& config)
      : config_(config),
        layout_(layout_of(config)),
        columns_(columns_of(config)),
        outputs_(static_cast<std::size_t>(config.outputs)),
        row_outputs_(outputs_),
        loss_(config) {}

  [[nodiscard]] const ModelLayout& layout() const noexcept override { return layout_; }

  Status initialize(ModelState& state, std::uint64_t seed) override {
    Rng rng = Rng::derive(seed, "model");
    fill_uniform(state.parameters(), 1.0 / std::sqrt(static_cast<double>(columns_)), rng);
    state.zero_optimizer();
    return ok();
  }

  Result<StepReport> compute_gradients(const ModelState& state, const BatchView& batch,
                                       GradientView out) override {
    RIVULET_CHECK(out.count == layout_.contribution(), "the contribution belongs to a different model");
    if (Status good = begin(batch); !good) return good.error();
    fill_zero(out);
    StepReport report;
    if (batch.rows == 0) return report;
    const std::span<T> gradient = out.as<T>();
    for (std::size_t row = 0; row < batch.rows; ++row) {
      forward(state, batch, row);
      loss_.judge(batch, row, row_outputs_, report);  // leaves d loss / d output in row_outputs_
      add_gradient(batch, row, gradient);
    }
    report.answers = loss_.answers();
    report.gradient_norm2 = norm2(out);
    report.finite = std::isfinite(report.loss_sum) && std::isfinite(report.gradient_norm2);
    return report;
  }

  Result<StepReport> evaluate(const ModelState& state, const BatchView& batch) override {
    if (Status good = begin(batch); !good) return good.error();
    StepReport report;
    for (std::size_t row = 0; row < batch.rows; ++row) {
      forward(state, batch, row);
      loss_.judge(batch, row, row_outputs_, report);
    }
    report.finite = std::isfinite(report.loss_sum);
    return report;
  }

  Result<std::vector<float>> predict(const ModelState& state, const BatchView& batch) override {
    std::vector<float> all;
    all.reserve(batch.rows * outputs_);
    for (std::size_t row = 0; row < batch.rows; ++row) {
      forward(state, batch, row);
      for (const T y : row_outputs_) all.push_back(static_cast<float>(y));
    }
    return all;
  }

 private:
  Status begin(const BatchView& batch) {
    check_batch(batch, config_);
    return loss_.begin(batch);
  }

  void forward(const ModelState& state, const BatchView& batch, std::size_t row) {
    const std::span<const T> parameters = state.parameters().as<T>();
    const std::span<const float> x = batch.features.subspan(row * columns_, columns_);
    for (std::size_t o = 0; o < outputs_; ++o) {
      row_outputs_[o] =
          parameters[outputs_ * columns_ + o] + dot<T>(parameters.data() + o * columns_, x.data(), columns_);
    }
  }

  void add_gradient(const BatchView& batch, std::size_t row, std::span<T> gradient) {
    const std::span<const float> x = batch.features.subspan(row * columns_, columns_);
    for (std::size_t o = 0; o < outputs_; ++o) {
      const T delta = row_outputs_[o];
      const std::span<T> weights = gradient.subspan(o * columns_, columns_);
      for (std::size_t c = 0; c < columns_; ++c) weights[c] += delta * static_cast<T>(x[c]);
      gradient[outputs_ * columns_ + o] += delta;
    }
  }

  // constant
  ModelConfig config_;
  ModelLayout layout_;
  std::size_t columns_;
  std::size_t outputs_;
  // scratch
  std::vector<T> row_outputs_;
  RowLoss<T> loss_;
};

Result<std::unique_ptr<Trainer>> make(const ModelConfig& config, Device&) {
  if (Status good = check_model_config(config); !good) return good.error();
  if (config.autocast_bfloat16)
    return Error{ErrorCode::invalid_config, "model.autocast: model linear does not support bfloat16"};
  if (config.scalar == Scalar::f64)
    return std::unique_ptr<Trainer>(std::make_unique<LinearTrainer<double>>(config));
  return std::unique_ptr<Trainer>(std::make_unique<LinearTrainer<float>>(config));
}

ModelNeeds needs(const ModelConfig& config) {
  return {static_cast<double>(config.outputs) * (static_cast<double>(columns_of(config)) + 1), 2};
}

}  // namespace

extern const ModelEntry model_linear;
const ModelEntry model_linear{.name = "linear",
                              .help = "one linear layer: linear or softmax regression; needs no LibTorch",
                              .make = make,
                              .needs = needs,
                              .linear_first = true,
                              .linear_last = true,
                              .linear = true,
                              .suits = [](std::span<const std::int64_t>) { return 1; },
                              .small_steps = true};

}  // namespace rivulet::devices
