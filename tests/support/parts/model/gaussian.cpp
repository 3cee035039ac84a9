// A model that cannot learn: the gradient of a batch is normal noise, seeded by its rows.
#include <algorithm>

#include "core/digest.h"
#include "core/rng.h"
#include "devices/trainer.h"

namespace rivulet::devices {
namespace {

class GaussianTrainer final : public Trainer {
 public:
  explicit GaussianTrainer(std::size_t numbers) {
    layout_.parameters = numbers;
    layout_.parameter_slots = {{"noise", {static_cast<std::int64_t>(numbers)}, 0, numbers}};
    Rng rng(1);
    for (float& number : drawn_) number = static_cast<float>(rng.normal());
  }
  [[nodiscard]] const ModelLayout& layout() const noexcept override { return layout_; }
  Status initialize(ModelState& state, std::uint64_t) override {
    std::ranges::fill(state.parameters().as<float>(), 0.0F);
    return ok();
  }
  Result<StepReport> compute_gradients(const ModelState&, const BatchView& batch, GradientView out) override {
    StepReport report;
    report.rows = batch.rows;
    Rng rng(digest_of(std::as_bytes(batch.features)).low);
    std::uint64_t bits = 0;
    std::size_t at = 0;
    for (float& number : out.as<float>()) {
      bits = at++ % 4 == 0 ? rng.next() : bits >> 16U;
      number = batch.rows > 0 ? drawn_[bits & 0xffffU] : 0.0F;
      report.gradient_norm2 += double{number} * number;
    }
    return report;
  }
  Result<StepReport> evaluate(const ModelState&, const BatchView& batch) override {
    StepReport report;
    report.rows = batch.rows;
    return report;
  }
  Result<std::vector<float>> predict(const ModelState&, const BatchView& batch) override {
    return std::vector<float>(batch.rows, 0.0F);
  }

 private:
  ModelLayout layout_;
  std::vector<float> drawn_ = std::vector<float>(0x10000);  ///< a cache of variates: much faster
};

/// As many parameters as model linear with the same configuration.
Result<std::unique_ptr<Trainer>> make(const ModelConfig& config, Device&) {
  std::int64_t columns = 1;
  for (const auto n : config.input) columns *= n;
  return std::unique_ptr<Trainer>(
      std::make_unique<GaussianTrainer>(static_cast<std::size_t>(config.outputs * (columns + 1))));
}

}  // namespace

extern const ModelEntry model_gaussian;
const ModelEntry model_gaussian{"gaussian", "test only: noise", &make};

}  // namespace rivulet::devices
