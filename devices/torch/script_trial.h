#pragma once
// Only files of devices/torch and devices/model/torch include this header: it includes LibTorch.
#include "devices/torch/script_network.h"
#include "devices/trainer.h"

namespace rivulet::devices {

/// Keys of model `torchscript`. Every device has a copy of the file.
inline constexpr Key script_file_key{
    .name = "model.file",
    .type = KeyType::text,
    .text = "\"\"",
    .help = "for torchscript: path of a module saved by torch.jit; every device needs a copy of the file",
    .sample = "#\"\"",
    .of_device = true};
inline constexpr Key script_sha256_key{.name = "model.sha256",
                                       .type = KeyType::text,
                                       .text = "\"\"",
                                       .help = "SHA-256 of model.file, as printed by `rivulet model inspect`",
                                       .sample = "#\"\""};

/// Loads the network of a script with only trainable parameters. Runs the file's code for loading. Errors:
/// invalid_config (with the library's message).
Result<std::shared_ptr<ScriptNetwork>> load_script(const ModelConfig& config);

/// Loads the script in a subprocess and measures its memory needs. Runs forward and backward passes on
/// `rows_min` and `rows_max` rows of zeros if the needs fit trial.memory. Errors: invalid_config (model.file:
/// the script's error with its place, or a timeout), cancelled.
Result<ModelNeeds> try_script(const ModelConfig& config, const Trial& trial);

}  // namespace rivulet::devices
