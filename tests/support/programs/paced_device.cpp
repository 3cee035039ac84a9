// `paced_device FIXED RATE STOP CONFIG [KEY=VALUE ...]`: what `rivulet run --stop-after STOP` does, but a
// batch of the model `mlp` takes FIXED seconds + rows / RATE, asleep for what is left once it is computed. So
// several devices on one machine can each be as slow as they like without being in each other's way.
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "core/check.h"
#include "core/clock.h"
#include "devices/modeled_device.h"
#include "runtime/signals.h"
#include "runtime/wiring/production.h"
#include "tests/support/model_fixture.h"
#include "tests/support/parts/parts.h"

using namespace rivulet;

namespace {

devices::DeviceProfile pace;  // an entry of the catalog is a plain function

class PacedTrainer final : public devices::Trainer {
 public:
  explicit PacedTrainer(std::unique_ptr<devices::Trainer> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] const devices::ModelLayout& layout() const noexcept override { return inner_->layout(); }
  Status initialize(devices::ModelState& state, std::uint64_t seed) override {
    return inner_->initialize(state, seed);
  }
  Result<devices::StepReport> compute_gradients(const devices::ModelState& state, const BatchView& batch,
                                                GradientView out) override {
    const TimePoint began = clock_.now();
    auto report = inner_->compute_gradients(state, batch, out);
    const Duration takes = devices::seconds_of(pace, batch.rows);
    std::this_thread::sleep_for(began + takes - clock_.now());
    return report;
  }
  Result<devices::ApplyReport> apply(devices::ModelState& state, const GradientView& agreed,
                                     const devices::SgdConfig& sgd, double learning_rate_factor) override {
    return inner_->apply(state, agreed, sgd, learning_rate_factor);
  }
  Result<devices::StepReport> evaluate(const devices::ModelState& state, const BatchView& batch) override {
    return inner_->evaluate(state, batch);
  }
  Result<std::vector<float>> predict(const devices::ModelState& state, const BatchView& batch) override {
    return inner_->predict(state, batch);
  }

 private:
  const std::unique_ptr<devices::Trainer> inner_;
  const RealClock clock_;
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
  runtime::ConfigInput input;
  input.file = argv[4];
  input.sets.assign(argv + 5, argv + argc);
  const auto loaded = runtime::load_config(input);
  for (const auto& problem : loaded.problems) std::cerr << problem.text() << '\n';
  if (!loaded.usable()) return 78;
  runtime::StopRequest stop{0};
  const runtime::SignalHandlers handlers(stop);
  const auto result =
      runtime::run_device_with(loaded, {.stop_after = stop_after.value()}, parts.catalog(), stop);
  if (result.exit != runtime::ExitCode::ok) std::cerr << "error: " << result.message << '\n';
  std::cout << to_json(result.summary) << '\n';
  return static_cast<int>(result.exit);
}
