#include "devices/torch/script_trial.h"

#include <ATen/Parallel.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "devices/model_support.h"
#include "devices/subprocess.h"
#include "devices/torch/guarded.h"

namespace rivulet::devices {
namespace {

/// Counts the bytes of tensors that this thread allocates and frees.
struct Meter final : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    now += bytes;
    most = std::max(most, now);
  }
  [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }
  std::int64_t now = 0;
  std::int64_t most = 0;
};

const std::string& file_of(const ModelConfig& config) {
  return config.settings.text(script_file_key.name);
}

Error wrong_file(const ModelConfig& config, const std::string& why) {
  return {ErrorCode::invalid_config, "model.file = '" + file_of(config) + "': " + why};
}

Result<ScriptBytes> pinned(const ModelConfig& config) {
  auto script = read_script(file_of(config));
  const std::string& sha256 = config.settings.text(script_sha256_key.name);
  if (!script) return Error{ErrorCode::invalid_config, "model.file: " + script.error().message};
  if (script.value().sha256 != sha256)
    return wrong_file(config, "its sha256 is " + script.value().sha256 + ", model.sha256 is " + sha256);
  return script;
}

Result<std::shared_ptr<ScriptNetwork>> loaded(const ModelConfig& config, const ScriptBytes& script) {
  auto made = guarded<std::shared_ptr<ScriptNetwork>>([&]() -> Result<std::shared_ptr<ScriptNetwork>> {
    auto network = std::make_shared<ScriptNetwork>(script.bytes);
    if (const std::string why = network->untrainable(); !why.empty()) return wrong_file(config, why);
    return network;
  });
  if (made || made.error().code == ErrorCode::invalid_config) return made;
  return wrong_file(config, made.error().message);
}

torch::Tensor zeros(const ModelConfig& config, std::int64_t rows) {
  std::vector<std::int64_t> shape{rows};
  shape.insert(shape.end(), config.input.begin(), config.input.end());
  return torch::zeros(shape);
}

/// Checks that two rows of zeros give two rows of `outputs` values.
Status fits(ScriptNetwork& network, const ModelConfig& config, bool training) {
  const torch::NoGradGuard no_grad;
  network.train(training);
  const auto output = network.forward(zeros(config, 2));
  if (output.dim() != 2 || output.size(0) != 2 || output.size(1) != config.outputs)
    return wrong_file(config, "forward() on two rows returns shape " + c10::str(output.sizes()) +
                                  ", expected [2, " + std::to_string(config.outputs) +
                                  "] (model.classes, or model.outputs)");
  return ok();
}

/// Returns the peak bytes that the library allocates for a forward and backward pass of `rows` rows of zeros.
double bytes_for(ScriptNetwork& network, const ModelConfig& config, std::int64_t rows) {
  const auto meter = std::make_shared<Meter>();
  const c10::DebugInfoGuard hearing(c10::DebugInfoKind::PROFILER_STATE, meter);
  network.forward(zeros(config, rows)).sum().backward();
  return static_cast<double>(meter->most);
}

/// Measures the memory needs: they show only when the script runs.
ModelNeeds measured(ScriptNetwork& network, const ModelConfig& config, std::int64_t rows) {
  double numbers = 0;
  for (const auto& parameter : network.parameters()) numbers += static_cast<double>(parameter.numel());
  network.train(true);
  bytes_for(network, config, rows);  // allocates the gradients
  const double few = bytes_for(network, config, rows);
  const double many = bytes_for(network, config, rows + 8);
  return {numbers, std::max(many - few, 0.0) / 8 / sizeof(float)};
}

/// Evaluates and trains `rows` rows of zeros once by the trainer itself, with the configured type, layout and
/// loss.
Status train_once(Trainer& trainer, const ModelConfig& config, std::size_t rows) {
  const auto device = make_host_device();
  auto state = ModelState::create(trainer.layout(), *device);
  if (!state) return state.error();
  auto out = device->allocate(trainer.layout().contribution() * bytes_of(trainer.layout().scalar));
  if (!out) return out.error();
  if (Status begun = trainer.initialize(state.value(), 1); !begun) return begun;
  const auto wide = static_cast<std::size_t>(config.loss == Loss::cross_entropy ? 1 : config.outputs);
  const std::vector<float> features(rows * columns_of(config));
  const std::vector<float> targets(rows * wide);
  const std::vector<RowTag> tags(rows);
  const BatchView batch{features, targets, rows, tags};
  const GradientView gradient = out.value()->view(trainer.layout().scalar, trainer.layout().contribution());
  if (auto seen = trainer.evaluate(state.value(), batch); !seen) return seen.error();
  if (auto trained = trainer.compute_gradients(state.value(), batch, gradient); !trained)
    return trained.error();
  return ok();
}

/// Error of a trial with `rows` rows, with the script's reason first.
Error with_rows(const ModelConfig& config, const Error& error, std::size_t rows) {
  if (error.code == ErrorCode::invalid_config) return error;
  return wrong_file(config, error.message + "; the trial batch has " + std::to_string(rows) +
                                (rows == 1 ? " row of zeros" : " rows of zeros"));
}

/// Runs in the subprocess, with one thread: a forked process has no threads of the pool.
Result<ModelNeeds> try_here(ModelConfig config, const ScriptBytes& script, const Trial& trial) {
  config.threads = 1;
  at::set_num_threads(1);
  auto network = loaded(config, script);
  if (!network) return network.error();
  ScriptNetwork& net = *network.value();
  constexpr std::size_t few = 2;
  const auto needs = guarded<ModelNeeds>([&]() -> Result<ModelNeeds> {
    if (Status good = fits(net, config, false); !good) return good.error();
    if (Status good = fits(net, config, true); !good) return good.error();
    return measured(net, config, few);
  });
  if (!needs) return with_rows(config, needs.error(), few);
  auto trainer = make_torch_trainer(
      config, {}, [&](const ModelConfig&) -> std::shared_ptr<Network> { return network.value(); });
  if (!trainer) return trainer.error();
  for (const std::size_t rows : std::set{trial.rows_min, trial.rows_max}) {
    const double takes =
        (needs.value().parameters + needs.value().per_row * static_cast<double>(rows)) * sizeof(float);
    if (takes > trial.memory) break;  // the caller reports the total and the keys that lower it
    if (Status good = train_once(*trainer.value(), config, rows); !good)
      return with_rows(config, good.error(), rows);
  }
  return needs;
}

Result<std::string> as_bytes(const Result<ModelNeeds>& needs) {
  if (!needs) return needs.error();
  std::string bytes(sizeof(ModelNeeds), '\0');
  std::memcpy(bytes.data(), &needs.value(), sizeof(ModelNeeds));
  return bytes;
}

std::string megabytes(double bytes) {
  return std::to_string(std::llround(bytes / 1e6)) + " MB";
}

}  // namespace

Result<std::shared_ptr<ScriptNetwork>> load_script(const ModelConfig& config) {
  const auto script = pinned(config);
  if (!script) return script.error();
  return loaded(config, script.value());
}

Result<ModelNeeds> try_script(const ModelConfig& config, const Trial& trial) {
  if (Status good = check_model_config(config); !good) return good.error();
  const auto script = pinned(config);
  if (!script) return script.error();
  if (const auto unpacked = static_cast<double>(script.value().unpacked); unpacked > trial.memory)
    return wrong_file(config, "unpacks to " + megabytes(unpacked) +
                                  ", more than device.memory = " + megabytes(trial.memory));
  const auto said =
      run_in_subprocess([&] { return as_bytes(try_here(config, script.value(), trial)); }, trial.patience);
  if (said) {
    ModelNeeds needs;
    std::memcpy(&needs, said.value().data(), sizeof needs);
    return needs;
  }
  if (said.error().code == ErrorCode::timed_out)
    return wrong_file(config, "the trial did not finish within " +
                                  std::to_string(std::llround(to_seconds(trial.patience.deadline))) + " s");
  if (said.error().code == ErrorCode::cancelled || said.error().code == ErrorCode::invalid_config)
    return said.error();
  // The machine failed, not the file, so a retry may succeed.
  if (said.error().code == ErrorCode::unavailable)
    return Error{ErrorCode::unavailable, "model.file = '" + file_of(config) + "': " + said.error().message};
  return wrong_file(config, said.error().message);
}

}  // namespace rivulet::devices
