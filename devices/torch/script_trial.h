#pragma once
// Only files of devices/torch and devices/model/torch include this header: it brings LibTorch.
#include "devices/torch/script_network.h"
#include "devices/trainer.h"

namespace rivulet::devices {

/// Keys of model `torchscript`: the file is a copy on every device.
inline constexpr Key script_file_key{
    .name = "model.file",
    .type = KeyType::text,
    .text = "\"\"",
    .help = "of name torchscript: saved by torch.jit, a copy on every device",
    .sample = "#\"\"",
    .of_device = true};
inline constexpr Key script_sha256_key{.name = "model.sha256",
                                       .type = KeyType::text,
                                       .text = "\"\"",
                                       .help = "of model.file, as `model inspect` prints it",
                                       .sample = "#\"\""};

/// The network of a script, whose parameters are all trained. Runs what the file does when it is loaded.
/// Errors: invalid_config (in the library's words).
Result<std::shared_ptr<ScriptNetwork>> load_script(const ModelConfig& config);

/// Loads the script and trains with it, in a process apart: forward and backward, as training does it, of
/// `rows_min` and, if what it measures fits trial.memory, of `rows_max` rows of zeros; returns what was
/// measured. Errors: invalid_config (model.file: what the script refuses, and where; that it did not answer
/// in time), cancelled.
Result<ModelNeeds> try_script(const ModelConfig& config, const Trial& trial);

}  // namespace rivulet::devices
