#include "runtime/wiring/simulation_learner.h"

namespace rivulet::runtime {
namespace {

using devices::ModelState;
using devices::StepReport;

class TimingTrainer final : public devices::Trainer {
 public:
  explicit TimingTrainer(const devices::ModelLayout& layout) : layout_(layout) {}
  [[nodiscard]] const devices::ModelLayout& layout() const noexcept override { return layout_; }
  Status initialize(ModelState&, std::uint64_t) override { return ok(); }
  Result<StepReport> compute_gradients(const ModelState&, const BatchView& batch, GradientView) override {
    return nothing_about(batch);
  }
  Result<StepReport> evaluate(const ModelState&, const BatchView& batch) override {
    return nothing_about(batch);
  }
  Result<std::vector<float>> predict(const ModelState&, const BatchView&) override {
    return Error{ErrorCode::unavailable, "a timing-only simulation has no model"};
  }

 private:
  static StepReport nothing_about(const BatchView& batch) { return {.rows = batch.rows}; }
  const devices::ModelLayout layout_;
};

}  // namespace

std::unique_ptr<devices::Trainer> make_timing_trainer(const devices::ModelLayout& layout) {
  return std::make_unique<TimingTrainer>(layout);
}

}  // namespace rivulet::runtime
