// `paced_device FIXED RATE STOP CONFIG [KEY=VALUE ...]`: as `rivulet run --stop-after STOP`, but a batch of
// the model `mlp` takes FIXED seconds + rows / RATE. It sleeps for the rest, so that several slow devices on
// one machine do not disturb each other.
#include <cstdlib>
#include <span>
#include <thread>

#include "core/check.h"
#include "core/clock.h"
#include "devices/modeled_device.h"
#include "tests/support/device_program.h"
#include "tests/support/model_fixture.h"
#include "tests/support/parts/parts.h"
#include "tests/support/wrapped_trainer.h"

using namespace rivulet;

namespace {

devices::DeviceProfile pace;  // catalog entries are plain functions without state

struct PacedTrainer final : testing::WrappedTrainer {
  using WrappedTrainer::WrappedTrainer;
  Result<devices::StepReport> compute_gradients(const devices::ModelState& state, const BatchView& batch,
                                                GradientView out) override {
    const TimePoint began = clock.now();
    auto report = inner->compute_gradients(state, batch, out);
    const Duration takes = devices::seconds_of(pace, batch.rows);
    std::this_thread::sleep_for(began + takes - clock.now());
    return report;
  }
  const RealClock clock;
};

Result<std::unique_ptr<devices::Trainer>> make_paced(const devices::ModelConfig& config,
                                                     devices::Device& device) {
  auto made = testing::model_entry("mlp").make(config, device);
  if (!made) return made;
  return std::unique_ptr<devices::Trainer>(std::make_unique<PacedTrainer>(std::move(made).value()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  pace = {from_seconds(std::atof(argv[1])), std::atof(argv[2])};
  const auto stop_after = runtime::parse_stop_after(argv[3]);
  if (!stop_after || !(pace.rows_per_second > 0)) return 2;
  const devices::ModelEntry paced{"mlp", "mlp at a known pace", make_paced,
                                  testing::model_entry("mlp").needs};
  testing::PartsCatalog parts;
  parts.replace(paced);
  return testing::run_device_program(std::span(argv + 4, argv + argc), {.stop_after = stop_after.value()},
                                     parts.catalog());
}
