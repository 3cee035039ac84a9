#include <array>

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

constexpr std::string_view name = "torchscript";
constexpr std::array keys{script_file_key, script_sha256_key};

std::vector<KeyFault> check(const Settings& settings, std::string_view model) {
  const std::string file(script_file_key.name);
  const std::string digest(script_sha256_key.name);
  std::vector<KeyFault> faults;
  if (model != name) {
    if (!settings.text(file).empty())
      faults.push_back({{file},
                        "'" + file + "' has no effect with model.name = '" + std::string(model) +
                            "', only with '" + std::string(name) + "'"});
    return faults;
  }
  if (settings.text(file).empty())
    faults.push_back(
        {{file, "model.name"}, "'" + file + "' is required for model.name = '" + std::string(name) + "'"});
  const std::string& text = settings.text(digest);
  if (text.size() != 64 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    faults.push_back({{digest, "model.name"},
                      "'" + digest +
                          "' must be the 64 hexadecimal digits that `rivulet model inspect` prints for " +
                          file});
  return faults;
}

/// Every script defines a different model.
std::string state_name(const Settings& settings) {
  return std::string(name) + "-" + settings.text(script_sha256_key.name).substr(0, 12);
}

}  // namespace

extern const ModelEntry model_torchscript;
const ModelEntry model_torchscript{.name = name,
                                   .help = "a TorchScript module, loaded from model.file",
                                   .make = make,
                                   .try_out = try_script,
                                   .keys = keys,
                                   .check = check,
                                   .state_name = state_name};

}  // namespace rivulet::devices
