#include "devices/class_balance.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/check.h"
#include "devices/host_memory.h"
#include "devices/inner_state.h"
#include "devices/model_support.h"

namespace rivulet::devices {
namespace {

constexpr const char* rows_name = "measured.class_rows";
constexpr const char* share_name = "measured.class_share";
constexpr double weight_max = 100;

ModelLayout with_shares(ModelLayout layout, std::size_t classes, double window) {
  if (classes == 0) return layout;
  layout.normalized.window = window;  // also needed without normalization
  layout.counted_classes = classes;
  append_buffers(layout, rows_name, 1);
  append_buffers(layout, share_name, classes);
  return layout;
}

/// The last buffers: number of counted rows, then the share of each class in them.
GradientView shares_in(const GradientView& numbers, std::size_t classes) {
  return numbers.slice(numbers.count - 1 - classes, 1 + classes);
}

template <class Each>
void with_numbers(const GradientView& numbers, const Each& each) {
  numbers.scalar == Scalar::f32 ? each(numbers.as<float>()) : each(numbers.as<double>());
}

class BalancingTrainer final : public Trainer {
 public:
  BalancingTrainer(std::unique_ptr<Trainer> model, Device& device, std::size_t classes,
                   std::vector<float> weights, double window)
      : model_(std::move(model)),
        device_(device),
        counted_(weights.empty() ? classes : 0),
        layout_(with_shares(model_->layout(), counted_, window)),
        weights_(std::move(weights)) {
    if (counted_ > 0) weights_.resize(classes);
  }
  [[nodiscard]] const ModelLayout& layout() const noexcept override { return layout_; }
  Status initialize(ModelState& state, std::uint64_t seed) override {
    inner_.forget();
    std::ranges::fill(state.statistics().class_rows, 0);
    ModelState inner = ModelState::over(model_->layout(), state);
    return model_->initialize(inner, seed);
  }
  Result<StepReport> compute_gradients(const ModelState& state, const BatchView& batch,
                                       GradientView out) override {
    if (counted_ > 0) weigh(state.statistics().class_rows);
    BatchView weighted = batch;
    weighted.class_weights = weights_;
    const std::size_t behind = layout_.buffers - model_->layout().buffers;
    auto report = model_->compute_gradients(inside(state), weighted, out.slice(0, out.count - behind));
    if (!report || counted_ == 0) return report;
    if (auto counted = count_labels(state, batch, out); !counted) return counted.error();
    return report;
  }
  Result<StepReport> evaluate(const ModelState& state, const BatchView& batch) override {
    return model_->evaluate(inside(state), batch);
  }
  Result<std::vector<float>> predict(const ModelState& state, const BatchView& batch) override {
    return model_->predict(inside(state), batch);
  }

 private:
  const ModelState& inside(const ModelState& state) { return inner_.of(model_->layout(), state); }
  void weigh(const std::vector<double>& rows) {
    const double all = std::accumulate(rows.begin(), rows.end(), 0.0);
    if (all == 0) return (void)std::ranges::fill(weights_, 1.0F);
    double roots = 0;
    for (const double n : rows) roots += std::sqrt(n);
    for (std::size_t c = 0; c < counted_; ++c)
      weights_[c] =
          static_cast<float>(std::min(weight_max, all / (roots * std::sqrt(std::max(1.0, rows[c])))));
  }
  Status count_labels(const ModelState& state, const BatchView& batch, const GradientView& out) {
    auto known = device_.to_host(shares_in(state.buffers(), counted_));
    if (!known) return known.error();
    std::vector<double> counts(counted_, 0);
    double before = 0;
    with_numbers(known.value(), [&](auto numbers) {
      before = static_cast<double>(numbers[0]);
      for (std::size_t c = 0; c < counted_; ++c) counts[c] = before * static_cast<double>(numbers[1 + c]);
    });
    for (std::size_t row = 0; row < batch.rows; ++row) ++counts[static_cast<std::size_t>(batch.targets[row])];
    const double rows = before + static_cast<double>(batch.rows);
    const GradientView place = shares_in(out, counted_);
    auto host = device_.to_host(place);
    if (!host) return host.error();
    with_numbers(host.value(), [&](auto numbers) {
      using T = typename decltype(numbers)::value_type;
      numbers[0] = static_cast<T>(rows);
      for (std::size_t c = 0; c < counted_; ++c)
        numbers[1 + c] = static_cast<T>(rows > 0 ? counts[c] / rows : 0);
    });
    return device_.from_host(host.value(), place);
  }

  const std::unique_ptr<Trainer> model_;
  Device& device_;
  const std::size_t counted_;  ///< classes; 0: fixed weights
  const ModelLayout layout_;
  // scratch
  InnerState inner_;
  std::vector<float> weights_;
};

}  // namespace

std::unique_ptr<Trainer> make_balancing(std::unique_ptr<Trainer> model, Device& device, std::size_t classes,
                                        std::vector<float> weights, double window) {
  RIVULET_CHECK(weights.empty() ? classes <= counted_classes_max : weights.size() == classes,
                "needs a weight per class, or few enough classes to count");
  return std::make_unique<BalancingTrainer>(std::move(model), device, classes, std::move(weights), window);
}

Status follow_classes(ModelState& state, double rows, Device& device) {
  auto& counts = state.statistics().class_rows;
  if (counts.empty()) return ok();
  const GradientView shares = shares_in(state.buffers(), counts.size());
  auto counted = change_on_host(device, shares, [&](const GradientView& host) {
    with_numbers(host, [&](auto numbers) {
      for (std::size_t c = 0; c < counts.size() && numbers[0] > 0; ++c)
        counts[c] += std::round(rows * static_cast<double>(numbers[1 + c]));
      std::ranges::fill(numbers, 0);
    });
  });
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  if (const double window = state.layout().normalized.window; all > window)
    for (double& count : counts) count *= window / all;
  return counted;
}

}  // namespace rivulet::devices
