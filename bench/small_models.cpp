// Measures a step of model `mlp`, relative to the same step with LibTorch. Gradient and update, in turns, CPU
// time of this thread; layer widths as in `rivulet config init`, and others.
//   build/release/bench_small_models [ROUNDS]
#include <cstdlib>

#include "bench/measure.h"
#include "core/rng.h"
#include "devices/torch_mlp.h"
#include "tests/support/model_fixture.h"
#include "tests/support/sgd.h"

using namespace rivulet;
using namespace rivulet::bench;

namespace {

struct Case {
  std::int64_t columns;
  std::vector<std::int64_t> hidden;
  std::size_t rows;
};

class Side {
 public:
  Side(const devices::ModelConfig& config, std::size_t rows, bool by_torch)
      : trainer_(by_torch ? devices::make_torch_mlp(config, testing::mlp_shape(config), {}).value()
                          : testing::model_entry("mlp").make(config, *device_).value()),
        state_(testing::make_state(*trainer_, *device_, 1)),
        memory_(testing::make_contribution(trainer_->layout(), *device_)),
        out_(testing::view_of(*memory_, trainer_->layout())),
        rows_(config, rows, 1) {}
  /// Returns the CPU seconds of `steps` steps.
  double run(std::size_t steps) {
    const double began = thread_cpu_seconds();
    for (std::size_t i = 0; i < steps; ++i) {
      RIVULET_CHECK(trainer_->compute_gradients(state_, rows_.all(), out_), "no gradient");
      devices::sgd_step(state_, out_);
    }
    return thread_cpu_seconds() - began;
  }

 private:
  std::unique_ptr<devices::Device> device_ = devices::make_host_device();
  std::unique_ptr<devices::Trainer> trainer_;
  devices::ModelState state_;
  std::unique_ptr<devices::Memory> memory_;
  GradientView out_;
  testing::Rows rows_;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  devices::prepare_process(1);
  for (const auto& [columns, hidden, rows] :
       {Case{8, {64, 64}, 1}, Case{8, {64, 64}, 16}, Case{24, {64, 64}, 16}, Case{24, {64, 64}, 128},
        Case{24, {128, 128}, 16}, Case{24, {128, 128}, 128}, Case{24, {256, 256}, 16},
        Case{24, {256, 256}, 128}, Case{784, {64}, 16}, Case{784, {64}, 128}}) {
    devices::ModelConfig config;
    config.name = "mlp";
    config.input = {columns};
    testing::set_hidden(config, hidden);
    testing::set_activation(config, "relu");
    testing::set_skip(config, true);
    Side own(config, rows, false);
    Side torch(config, rows, true);
    const auto steps = static_cast<std::size_t>(std::max(1.0, 0.02 / (torch.run(20) / 20)));
    own.run(steps);
    std::vector<double> times;
    double us = 0;
    for (int round = 0; round < rounds; ++round) {
      const double by_torch = torch.run(steps);
      const double by_own = own.run(steps);
      times.push_back(by_torch / by_own);
      us = 1e6 * by_own / static_cast<double>(steps);
    }
    fmt::print("{} columns, {} hidden layers of {}, {} rows: {} as fast, {:.1f} us per step\n", columns,
               hidden.size(), hidden.front(), rows, spread(times, "x"), us);
  }
}
