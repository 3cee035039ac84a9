#pragma once
// Only files of devices/torch and devices/model/torch include this header: it brings LibTorch.
#include "devices/torch/script_network.h"
#include "devices/trainer.h"

namespace rivulet::devices {

/// The network of a script, whose parameters are all trained. Runs what the file does when it is loaded.
/// Errors: invalid_config (in the library's words).
Result<std::shared_ptr<ScriptNetwork>> load_script(const ModelConfig& config);

/// Loads the script and trains with it, in a process apart: forward and backward, as training does it, of
/// `rows_min` and, if what it measures fits trial.memory, of `rows_max` rows of zeros; returns what was
/// measured. Errors: invalid_config (model.file: what the script refuses, and where; that it did not answer
/// in time), cancelled.
Result<ModelNeeds> try_script(const ModelConfig& config, const Trial& trial);

}  // namespace rivulet::devices
