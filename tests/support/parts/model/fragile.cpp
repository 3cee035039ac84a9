// The model "bias", but a row with target 9 makes the gradient of its batch non-finite.
#include <algorithm>
#include <limits>

#include "devices/trainer.h"

namespace rivulet::devices {

extern const ModelEntry model_bias;

namespace {

class FragileTrainer final : public Trainer {
 public:
  explicit FragileTrainer(std::unique_ptr<Trainer> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] const ModelLayout& layout() const noexcept override { return inner_->layout(); }
  Status initialize(ModelState& state, std::uint64_t seed) override {
    return inner_->initialize(state, seed);
  }
  Result<StepReport> compute_gradients(const ModelState& state, const BatchView& batch,
                                       GradientView out) override {
    auto report = inner_->compute_gradients(state, batch, out);
    const bool broken = std::find(batch.targets.begin(), batch.targets.end(), 9.0F) != batch.targets.end();
    if (!broken || !report) return report;
    out.as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    report.value().finite = false;
    return report;
  }
  Result<StepReport> evaluate(const ModelState& state, const BatchView& batch) override {
    return inner_->evaluate(state, batch);
  }
  Result<std::vector<float>> predict(const ModelState& state, const BatchView& batch) override {
    return inner_->predict(state, batch);
  }

 private:
  std::unique_ptr<Trainer> inner_;
};

Result<std::unique_ptr<Trainer>> make(const ModelConfig& config, Device& device) {
  auto inner = model_bias.make(config, device);
  if (!inner) return inner.error();
  return std::unique_ptr<Trainer>(std::make_unique<FragileTrainer>(std::move(inner).value()));
}

}  // namespace

extern const ModelEntry model_fragile;
const ModelEntry model_fragile{"fragile", "test only: a target of 9 breaks it", &make};

}  // namespace rivulet::devices
