#include "devices/normalizer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "core/check.h"

namespace rivulet::devices {
namespace {

/// Below that part of its mean a feature's deviation is the rounding of its numbers.
constexpr double least_relative_deviation = 1e-6;

void append(ModelLayout& layout, const char* name, std::size_t count) {
  layout.buffer_slots.push_back({name, {static_cast<std::int64_t>(count)}, layout.buffers, count});
  layout.buffers += count;
}

constexpr std::string_view statistics_prefix = "normalize.";

ModelLayout with_statistics(ModelLayout layout, std::size_t columns) {
  append(layout, "normalize.rows", 1);
  append(layout, "normalize.mean", columns);
  append(layout, "normalize.variance", columns);
  return layout;
}

/// Of the rows that were trained.
struct Statistics {
  double rows = 0;
  std::vector<double> mean, variance;

  void read(const GradientView& from) {
    const auto take = [&](auto numbers) {
      rows = static_cast<double>(numbers[0]);
      const std::size_t columns = (numbers.size() - 1) / 2;
      mean.assign(numbers.begin() + 1, numbers.begin() + 1 + static_cast<std::ptrdiff_t>(columns));
      variance.assign(numbers.begin() + 1 + static_cast<std::ptrdiff_t>(columns), numbers.end());
    };
    from.scalar == Scalar::f32 ? take(from.as<float>()) : take(from.as<double>());
  }
  void write(const GradientView& to) const {
    const auto put = [&](auto numbers) {
      using T = typename decltype(numbers)::value_type;
      numbers[0] = static_cast<T>(rows);
      for (std::size_t i = 0; i < mean.size(); ++i) {
        numbers[1 + i] = static_cast<T>(mean[i]);
        numbers[1 + mean.size() + i] = static_cast<T>(variance[i]);
      }
    };
    to.scalar == Scalar::f32 ? put(to.as<float>()) : put(to.as<double>());
  }
  [[nodiscard]] std::vector<double> factors() const;
  void add(const BatchView& batch);
  void add_column(const BatchView& batch, std::size_t column, double weight);
};

/// Around the mean so far, so that nothing cancels however far that is from 0.
void Statistics::add(const BatchView& batch) {
  const auto now = static_cast<double>(batch.rows);
  const double weight = now / (rows + now);
  for (std::size_t column = 0; column < mean.size(); ++column) add_column(batch, column, weight);
  rows += now;
}

void Statistics::add_column(const BatchView& batch, std::size_t column, double weight) {
  const double about = rows > 0 ? mean[column] : batch.features[column];
  double sum = 0;
  double squares = 0;
  for (std::size_t row = 0; row < batch.rows; ++row) {
    const double x = batch.features[row * mean.size() + column] - about;
    sum += x;
    squares += x * x;
  }
  const double shift = weight * sum / static_cast<double>(batch.rows);
  mean[column] = about + shift;
  variance[column] = std::max(0.0, (1 - weight) * variance[column] +
                                       weight * squares / static_cast<double>(batch.rows) - shift * shift);
}

std::vector<double> Statistics::factors() const {
  std::vector<double> all(mean.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double deviation = std::sqrt(variance[i]);
    const bool varies = deviation > least_relative_deviation * std::abs(mean[i]) && deviation > 0;
    all[i] = varies ? 1 / deviation : 0;
  }
  return all;
}

class NormalizingTrainer final : public Trainer {
 public:
  NormalizingTrainer(std::unique_ptr<Trainer> model, Device& device, const Normalization& normalization)
      : model_(std::move(model)),
        device_(device),
        normalization_(normalization),
        layout_(with_statistics(model_->layout(), normalization.columns)) {}

  [[nodiscard]] const ModelLayout& layout() const noexcept override { return layout_; }

  Status initialize(ModelState& state, std::uint64_t seed) override {
    inner_.reset();
    ModelState inner = ModelState::over(model_->layout(), state);
    return model_->initialize(inner, seed);
  }
  Result<StepReport> compute_gradients(const ModelState& state, const BatchView& batch,
                                       GradientView out) override {
    if (auto known = read(state); !known) return known.error();
    if (batch.rows > 0 && known_.rows < normalization_.rows) known_.add(batch);
    auto report =
        model_->compute_gradients(inside(state), normalized(batch), out.slice(0, inner_contribution()));
    if (!report) return report;
    auto host = device_.to_host(statistics_of(out, layout_.contribution()));
    if (!host) return host.error();
    known_.write(host.value());
    if (auto there = device_.from_host(host.value(), statistics_of(out, layout_.contribution())); !there)
      return there.error();
    return report;
  }
  Result<StepReport> evaluate(const ModelState& state, const BatchView& batch) override {
    if (auto known = read(state); !known) return known.error();
    return model_->evaluate(inside(state), normalized(batch));
  }
  Result<std::vector<float>> predict(const ModelState& state, const BatchView& batch) override {
    if (auto known = read(state); !known) return known.error();
    return model_->predict(inside(state), normalized(batch));
  }

 private:
  [[nodiscard]] std::size_t inner_contribution() const { return layout_.contribution() - statistics(); }
  [[nodiscard]] std::size_t statistics() const { return 1 + 2 * normalization_.columns; }
  [[nodiscard]] GradientView statistics_of(const GradientView& all, std::size_t count) const {
    return all.slice(count - statistics(), statistics());
  }
  /// What the model sees of a state. Those of a device lie where they lie: the last one is kept.
  const ModelState& inside(const ModelState& state) {
    const std::byte* where = state.parameters().data;
    if (!inner_ || inner_->parameters().data != where || inner_->buffers().data != state.buffers().data)
      inner_.emplace(ModelState::over(model_->layout(), state));
    return *inner_;
  }
  Status read(const ModelState& state) {
    auto host = device_.to_host(statistics_of(state.buffers(), layout_.buffers));
    if (!host) return host.error();
    known_.read(host.value());
    return ok();
  }
  [[nodiscard]] BatchView normalized(const BatchView& batch);

  const std::unique_ptr<Trainer> model_;
  Device& device_;
  const Normalization normalization_;
  const ModelLayout layout_;
  std::optional<ModelState> inner_;
  Statistics known_;
  std::vector<float> features_;
};

BatchView NormalizingTrainer::normalized(const BatchView& batch) {
  const std::size_t columns = normalization_.columns;
  if (known_.rows == 0) return batch;
  features_.resize(std::max(features_.size(), batch.rows * columns));
  const std::vector<double> factor = known_.factors();
  for (std::size_t row = 0; row < batch.rows; ++row)
    for (std::size_t i = 0; i < columns; ++i)
      features_[row * columns + i] =
          static_cast<float>((batch.features[row * columns + i] - known_.mean[i]) * factor[i]);
  BatchView seen = batch;
  seen.features = std::span(features_).first(batch.rows * columns);
  return seen;
}

bool is_statistics(const TensorSlot& slot) {
  return slot.name.starts_with(statistics_prefix);
}

}  // namespace

std::optional<FeatureScaling> feature_scaling(const ModelState& state) {
  const auto& slots = state.layout().buffer_slots;
  const auto first = std::ranges::find_if(slots, is_statistics);
  if (first == slots.end()) return std::nullopt;
  Statistics known;
  known.read(state.buffers().slice(first->begin, state.layout().buffers - first->begin));
  if (known.rows == 0) return std::nullopt;
  return FeatureScaling{known.mean, known.factors()};
}

ModelLayout without_statistics(ModelLayout layout) {
  std::erase_if(layout.buffer_slots, is_statistics);
  layout.buffers = 0;
  for (const TensorSlot& slot : layout.buffer_slots) layout.buffers += slot.count;
  return layout;
}

std::unique_ptr<Trainer> make_normalizing(std::unique_ptr<Trainer> model, Device& device,
                                          const Normalization& normalization) {
  return std::make_unique<NormalizingTrainer>(std::move(model), device, normalization);
}

}  // namespace rivulet::devices
