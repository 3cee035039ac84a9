#include "devices/model_support.h"
#include "devices/torch/script_trial.h"
#include "devices/torch/torch_trainer.h"

namespace rivulet::devices {
namespace {

Result<std::unique_ptr<Trainer>> make(const ModelConfig& config, Device& device) {
  if (Status good = check_model_config(config); !good) return good.error();
  const auto network = load_script(config);
  if (!network) return network.error();
  return make_torch_trainer(config, device.computes_on(),
                            [&](const ModelConfig&) -> std::shared_ptr<Network> { return network.value(); });
}

}  // namespace

extern const ModelEntry model_torchscript;
const ModelEntry model_torchscript{"torchscript", "your own: a module saved by torch.jit, model.file", make,
                                   nullptr, try_script};

}  // namespace rivulet::devices
