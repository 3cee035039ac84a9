// Measures a step on a GPU, compared with the same step on this host with all its threads. Gradient and
// update, in turns, wall time, including the transfers between host and GPU.
//   build/release/bench_gpu_steps [ROUNDS]
#include <cstdlib>

#include "bench/measure.h"
#include "core/clock.h"
#include "devices/cuda_device.h"
#include "tests/support/model_fixture.h"
#include "tests/support/sgd.h"

using namespace rivulet;
using namespace rivulet::bench;

namespace {

class Side {
 public:
  Side(std::unique_ptr<devices::Device> device, const devices::ModelConfig& config, std::size_t rows)
      : device_(std::move(device)),
        trainer_(testing::make_trainer(config, *device_)),
        state_(testing::make_state(*trainer_, *device_, 1)),
        memory_(testing::make_contribution(trainer_->layout(), *device_)),
        out_(testing::view_of(*memory_, trainer_->layout())),
        rows_(config, rows, 1) {}
  /// Returns the seconds of `steps` steps.
  double run(std::size_t steps) {
    const RealClock clock;
    const TimePoint began = clock.now();
    for (std::size_t i = 0; i < steps; ++i) {
      RIVULET_CHECK(trainer_->compute_gradients(state_, rows_.all(), out_), "no gradient");
      devices::sgd_step(state_, out_);
    }
    return to_seconds(clock.now() - began);
  }
  [[nodiscard]] std::size_t parameters() const { return trainer_->layout().parameters; }

 private:
  std::unique_ptr<devices::Device> device_;
  std::unique_ptr<devices::Trainer> trainer_;
  devices::ModelState state_;
  std::unique_ptr<devices::Memory> memory_;
  GradientView out_;
  testing::Rows rows_;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  devices::prepare_process(0);
  for (const char* model : {"mlp", "lenet5", "cnn"}) {
    for (const std::size_t rows : {16, 128, 1024}) {
      devices::ModelConfig config;
      config.name = model;
      config.outputs = 10;
      config.input = {1, 28, 28};
      if (std::string_view(model) == "mlp") {
        config.input = {784};
        testing::set_hidden(config, {1024, 1024});
        testing::set_activation(config, "relu");
        testing::set_skip(config, false);
      }
      auto gpu = devices::make_cuda_device(0);
      if (!gpu) {
        fmt::print("{}\n", gpu.error().message);
        return 1;
      }
      Side there(std::move(gpu).value(), config, rows);
      Side here(devices::make_host_device(), config, rows);
      there.run(20);
      const auto steps = static_cast<std::size_t>(std::max(2.0, 0.05 / (here.run(3) / 3)));
      std::vector<double> times;
      double us = 0;
      for (int round = 0; round < rounds; ++round) {
        const double by_host = here.run(steps);
        const double by_gpu = there.run(steps);
        times.push_back(by_host / by_gpu);
        us = 1e6 * by_gpu / static_cast<double>(steps);
      }
      fmt::print("{}, {} parameters, {} rows: {} as fast on the GPU, {:.0f} us per step there\n", model,
                 there.parameters(), rows, spread(times, "x"), us);
    }
  }
}
