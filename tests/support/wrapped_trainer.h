#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "devices/trainer.h"

namespace rivulet::testing {

/// Forwards to another trainer; tests override the calls that they observe or spoil.
struct WrappedTrainer : devices::Trainer {
  explicit WrappedTrainer(std::unique_ptr<devices::Trainer> trainer) : inner(std::move(trainer)) {}
  [[nodiscard]] const devices::ModelLayout& layout() const noexcept override { return inner->layout(); }
  Status initialize(devices::ModelState& state, std::uint64_t seed) override {
    return inner->initialize(state, seed);
  }
  Result<devices::StepReport> compute_gradients(const devices::ModelState& state, const BatchView& batch,
                                                GradientView out) override {
    return inner->compute_gradients(state, batch, out);
  }
  Result<devices::StepReport> evaluate(const devices::ModelState& state, const BatchView& batch) override {
    return inner->evaluate(state, batch);
  }
  Result<std::vector<float>> predict(const devices::ModelState& state, const BatchView& batch) override {
    return inner->predict(state, batch);
  }
  std::unique_ptr<devices::Trainer> inner;
};

}  // namespace rivulet::testing
