// Measures the cost of normalization, clipping and stream monitoring per step. The same step (gradient and
// update) with and without them, in turns, CPU time of this thread: LeNet-5 with batches of 64 images, and
// the mlp that `rivulet config init` writes for 24 sensors, with batches of 16 and 128 rows.
//   build/release/bench_watching_cost [ROUNDS]
#include <cstdlib>

#include "bench/measure.h"
#include "core/rng.h"
#include "devices/columns.h"
#include "devices/normalizer.h"
#include "runtime/train/stream_watch.h"
#include "tests/support/counting_metrics.h"
#include "tests/support/model_fixture.h"
#include "tests/support/sgd.h"

using namespace rivulet;
using namespace rivulet::bench;

namespace {

struct NoLog final : runtime::Logger {
  void write(runtime::Level, std::string_view, const runtime::Fields&) override {}
};

struct Case {
  const char* name;
  devices::ModelConfig model;
  std::size_t rows;  ///< per batch
};

std::vector<Case> cases() {
  devices::ModelConfig sensors;
  sensors.name = "mlp";
  sensors.input = {24};
  sensors.outputs = 10;
  testing::set_hidden(sensors, {64, 64});
  testing::set_activation(sensors, "relu");
  testing::set_skip(sensors, true);
  devices::ModelConfig pictures;
  pictures.name = "lenet5";
  pictures.input = {1, 28, 28};
  return {{"lenet5, 64 images", pictures, 64},
          {"mlp, 16 rows of 24 sensors", sensors, 16},
          {"mlp, 128 rows of 24 sensors", sensors, 128}};
}

/// A model with its rows; `watched` adds normalization, clipping and monitoring.
class Side {
 public:
  Side(const Case& of, bool watched) : rows_(of.rows), columns_(1), watched_(watched) {
    for (const auto n : of.model.input) columns_ *= static_cast<std::size_t>(n);
    const auto& entry = testing::model_entry(of.model.name);
    trainer_ = entry.make(of.model, *device_).value();
    if (watched)
      trainer_ = devices::make_normalizing(
          std::move(trainer_), *device_,
          {.features = columns_, .linear_first = entry.linear_first, .linear_last = entry.linear_last});
    state_.emplace(testing::make_state(*trainer_, *device_, 1));
    memory_ = testing::make_contribution(trainer_->layout(), *device_);
    out_ = testing::view_of(*memory_, trainer_->layout());
    Rng rng = Rng::derive(1, "bench");
    features_.resize(stock * rows_ * columns_);
    targets_.resize(stock * rows_);
    for (auto& x : features_) x = static_cast<float>(rng.normal());
    for (auto& y : targets_) y = static_cast<float>(rng.below(10));
    std::vector<std::string> names;
    for (std::size_t i = 0; i < columns_; ++i) names.push_back("sensor-" + std::to_string(i));
    watch_.emplace(runtime::StreamWatch::Parts{
        .clock = clock_, .status = status_, .metrics = metrics_, .log = log_, .features = std::move(names)});
  }
  /// Returns the CPU seconds of `steps` steps.
  double run(std::size_t steps) {
    const double began = thread_cpu_seconds();
    for (std::size_t i = 0; i < steps; ++i) step();
    return thread_cpu_seconds() - began;
  }

 private:
  static constexpr std::size_t stock = 64;  ///< batches

  void step() {
    const std::size_t at = next_++ % stock * rows_;
    const BatchView batch{std::span(features_).subspan(at * columns_, rows_ * columns_),
                          std::span(targets_).subspan(at, rows_),
                          rows_,
                          {}};
    const auto report = trainer_->compute_gradients(*state_, batch, out_);
    RIVULET_CHECK(report, "no gradient");
    if (watched_) watch_->computed(report.value(), batch, rows_);
    devices::OptimizerConfig optimizer = optimizer_;
    optimizer.clip_usual = watched_;
    RIVULET_CHECK(devices::apply_gradient(optimizer, *state_, out_, 1, 1, *device_), "the update failed");
    if (watched_)
      RIVULET_CHECK(devices::follow_columns(*state_, static_cast<double>(rows_), *device_),
                    "updating the column statistics failed");
  }

  const std::size_t rows_;
  std::size_t columns_;
  const bool watched_;
  RealClock clock_;
  runtime::NodeStatus status_;
  testing::CountingMetrics metrics_;
  NoLog log_;
  std::unique_ptr<devices::Device> device_ = devices::make_host_device();
  std::unique_ptr<devices::Trainer> trainer_;
  std::optional<devices::ModelState> state_;
  std::unique_ptr<devices::Memory> memory_;
  GradientView out_;
  devices::OptimizerConfig optimizer_ = devices::config_of(devices::SgdConfig{});
  std::vector<float> features_, targets_;
  std::optional<runtime::StreamWatch> watch_;
  std::size_t next_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  for (const Case& of : cases()) {
    Side without(of, false);
    Side with(of, true);
    const auto steps = static_cast<std::size_t>(0.02 / (without.run(20) / 20));
    with.run(steps);
    std::vector<double> share;
    double bare = 0;
    for (int round = 0; round < rounds; ++round) {
      bare = without.run(steps);
      share.push_back(100 * (with.run(steps) / bare - 1));
    }
    fmt::print("{}: {} of a step of {:.1f} us\n", of.name, spread(share, "%"),
               1e6 * bare / static_cast<double>(steps));
  }
}
