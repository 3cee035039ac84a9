// A test-only model, added by this file: predicts one number, independent of the features.
#include <cmath>

#include "devices/trainer.h"

namespace rivulet::devices {
namespace {

class BiasTrainer final : public Trainer {
 public:
  BiasTrainer() {
    layout_.parameters = 1;
    layout_.parameter_slots = {{"bias", {1}, 0, 1}};
  }
  [[nodiscard]] const ModelLayout& layout() const noexcept override { return layout_; }
  Status initialize(ModelState& state, std::uint64_t) override {
    state.parameters().as<float>()[0] = 0;
    return ok();
  }
  Result<StepReport> compute_gradients(const ModelState& state, const BatchView& batch,
                                       GradientView out) override {
    StepReport report = errors(state, batch);
    double sum = 0;
    for (std::size_t i = 0; i < batch.rows; ++i)
      sum += 2.0 * (state.parameters().as<float>()[0] - batch.targets[i]);
    out.as<float>()[0] = batch.rows > 0 ? static_cast<float>(sum / static_cast<double>(batch.rows)) : 0.0F;
    return report;
  }
  Result<StepReport> evaluate(const ModelState& state, const BatchView& batch) override {
    return errors(state, batch);
  }
  Result<std::vector<float>> predict(const ModelState& state, const BatchView& batch) override {
    return std::vector<float>(batch.rows, state.parameters().as<float>()[0]);
  }

 private:
  static StepReport errors(const ModelState& state, const BatchView& batch) {
    StepReport report;
    report.rows = batch.rows;
    for (std::size_t i = 0; i < batch.rows; ++i) {
      const double e = state.parameters().as<float>()[0] - batch.targets[i];
      report.loss_sum += e * e;
      report.correct += std::abs(e) < 0.75 ? 1 : 0;
    }
    return report;
  }
  ModelLayout layout_;
};

Result<std::unique_ptr<Trainer>> make(const ModelConfig&, Device&) {
  return std::unique_ptr<Trainer>(std::make_unique<BiasTrainer>());
}

}  // namespace

extern const ModelEntry model_bias;
const ModelEntry model_bias{"bias", "test only: one number", &make};

}  // namespace rivulet::devices
