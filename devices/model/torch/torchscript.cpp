#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <string>

#include "devices/model_support.h"
#include "devices/torch/guarded.h"
#include "devices/torch/script_network.h"
#include "devices/torch/torch_trainer.h"

namespace rivulet::devices {
namespace {

/// Hears of every tensor that this thread allocates and frees.
struct Meter final : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    now += bytes;
    most = std::max(most, now);
  }
  [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }
  std::int64_t now = 0;
  std::int64_t most = 0;
};

Error wrong_file(const ModelConfig& config, const std::string& why) {
  return {ErrorCode::invalid_config, "model.file = '" + config.file + "': " + why};
}

Result<ScriptBytes> pinned(const ModelConfig& config) {
  auto script = read_script(config.file);
  if (!script) return Error{ErrorCode::invalid_config, "model.file: " + script.error().message};
  if (script.value().sha256 != config.sha256)
    return wrong_file(config,
                      "its sha256 is " + script.value().sha256 + ", model.sha256 is " + config.sha256);
  return script;
}

torch::Tensor zeros(const ModelConfig& config, std::int64_t rows) {
  std::vector<std::int64_t> shape{rows};
  shape.insert(shape.end(), config.input.begin(), config.input.end());
  return torch::zeros(shape);
}

/// Two rows of zeros must come out as two rows of `outputs` numbers.
Status fits(ScriptNetwork& network, const ModelConfig& config) {
  const torch::NoGradGuard no_grad;
  network.train(false);
  const auto output = network.forward(zeros(config, 2));
  if (output.dim() != 2 || output.size(0) != 2 || output.size(1) != config.outputs)
    return wrong_file(config, "forward() of two rows gives the shape " + c10::str(output.sizes()) +
                                  ", must be [2, " + std::to_string(config.outputs) +
                                  "] (model.classes, or model.outputs)");
  return ok();
}

/// An agreed state holds all parameters, and every one of them gets a gradient.
Status trainable(ScriptNetwork& network, const ModelConfig& config) {
  if (network.parameters().empty()) return wrong_file(config, "has no parameter to train");
  for (const auto& item : network.named_parameters())
    if (!item.value().is_floating_point() || !item.value().requires_grad())
      return wrong_file(config, "parameter '" + item.key() + "' is frozen: save it as a buffer");
  return ok();
}

Result<std::unique_ptr<Trainer>> make(const ModelConfig& config, Device& device) {
  if (Status good = check_model_config(config); !good) return good.error();
  auto script = pinned(config);
  if (!script) return script.error();
  auto made = guarded<std::shared_ptr<ScriptNetwork>>([&]() -> Result<std::shared_ptr<ScriptNetwork>> {
    auto network = std::make_shared<ScriptNetwork>(script.value().bytes);
    if (Status all = trainable(*network, config); !all) return all.error();
    if (Status good = fits(*network, config); !good) return good.error();
    return network;
  });
  if (!made) {
    if (made.error().code == ErrorCode::invalid_config) return made.error();
    return wrong_file(config, made.error().message);
  }
  return make_torch_trainer(config, device.computes_on(),
                            [&](const ModelConfig&) -> std::shared_ptr<Network> { return made.value(); });
}

/// What the library took for a pass forward and back over `rows` rows of zeros, in bytes.
double bytes_for(ScriptNetwork& network, const ModelConfig& config, std::int64_t rows) {
  const auto meter = std::make_shared<Meter>();
  const c10::DebugInfoGuard hearing(c10::DebugInfoKind::PROFILER_STATE, meter);
  network.forward(zeros(config, rows)).sum().backward();
  return static_cast<double>(meter->most);
}

/// Measured, for nothing but running it says what a script takes.
ModelNeeds needs(const ModelConfig& config) {
  const auto script = pinned(config);
  if (!script) return {};
  const auto measured = guarded<ModelNeeds>([&]() -> Result<ModelNeeds> {
    ScriptNetwork network(script.value().bytes);
    double numbers = 0;
    for (const auto& parameter : network.parameters()) numbers += static_cast<double>(parameter.numel());
    network.train(true);
    bytes_for(network, config, 2);  // gradients are made
    const double few = bytes_for(network, config, 2);
    const double many = bytes_for(network, config, 10);
    return ModelNeeds{numbers, std::max(many - few, 0.0) / 8 / sizeof(float)};
  });
  return measured ? measured.value() : ModelNeeds{};
}

}  // namespace

extern const ModelEntry model_torchscript;
const ModelEntry model_torchscript{"torchscript", "your own: a module saved by torch.jit, model.file", make,
                                   needs};

}  // namespace rivulet::devices
