#pragma once
#include <memory>
#include <vector>

#include "core/check.h"
#include "core/clock.h"
#include "core/rng.h"
#include "devices/device.h"
#include "devices/trainer.h"
#include "runtime/node/catalog.h"
#include "runtime/node/node.h"
#include "tests/support/sgd.h"

namespace rivulet::bench {

/// A training step (gradient and update) with the product's Trainer on rows in memory; LeNet-5 by default.
/// The rows are 64 batches, used in turn. Owner: one thread.
class ModelStep {
 public:
  explicit ModelStep(std::size_t rows, const runtime::Config::Model& model = {},
                     const RowShape& shape = {{1, 28, 28}, 1})
      : rows_(rows),
        columns_(shape.columns()),
        trainer_(trainer_on(*device_, model, shape)),
        state_(devices::ModelState::create(trainer_->layout(), *device_).value()),
        features_(stock * rows * columns_),
        targets_(stock * rows),
        memory_(device_->allocate(trainer_->layout().contribution() * sizeof(float)).value()),
        gradient_(memory_->view(Scalar::f32, trainer_->layout().contribution())) {
    RIVULET_CHECK(trainer_->initialize(state_, 1), "the model was not initialized");
    Rng rng = Rng::derive(1, "bench");
    for (auto& f : features_) f = static_cast<float>(rng.uniform());
    for (auto& t : targets_) t = static_cast<float>(rng.below(10));
  }
  void run() {
    const std::size_t at = next_++ % stock * rows_;
    const BatchView batch{std::span(features_).subspan(at * columns_, rows_ * columns_),
                          std::span(targets_).subspan(at, rows_),
                          rows_,
                          {}};
    RIVULET_CHECK(trainer_->compute_gradients(state_, batch, gradient_), "no gradient");
    devices::sgd_step(state_, gradient_);
  }
  /// Runs for `length`. Returns the CPU time of this thread per row, in microseconds.
  double us_per_row(Duration length) {
    const RealClock clock;
    const TimePoint end = clock.now() + length;
    const double began = thread_cpu_seconds();
    std::size_t steps = 0;
    for (; clock.now() < end; ++steps) run();
    return (thread_cpu_seconds() - began) * 1e6 / static_cast<double>(steps * rows_);
  }
  /// The rows, for other loops to train on.
  [[nodiscard]] const std::vector<float>& features() const { return features_; }
  [[nodiscard]] const std::vector<float>& targets() const { return targets_; }

 private:
  static constexpr std::size_t stock = 64;  ///< batches
  static std::unique_ptr<devices::Trainer> trainer_on(devices::Device& device,
                                                      const runtime::Config::Model& model,
                                                      const RowShape& shape) {
    runtime::Config config;
    config.model = model;
    return runtime::build_trainer(config, runtime::builtin_catalog(), shape, device).value();
  }
  std::unique_ptr<devices::Device> device_ = devices::make_host_device();
  const std::size_t rows_;
  const std::size_t columns_;
  std::unique_ptr<devices::Trainer> trainer_;
  devices::ModelState state_;
  std::vector<float> features_;
  std::vector<float> targets_;
  std::unique_ptr<devices::Memory> memory_;
  GradientView gradient_;
  std::size_t next_ = 0;
};

}  // namespace rivulet::bench
