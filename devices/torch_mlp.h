#pragma once
#include <memory>

#include "core/result.h"
#include "devices/trainer.h"

namespace rivulet::devices {

/// Model `mlp` by LibTorch: wide layers, a GPU, bfloat16. Null in a build without LibTorch. Takes keys that
/// model/mlp.cpp has checked. Errors: as make_torch_trainer().
extern Result<std::unique_ptr<Trainer>> (*const make_torch_mlp)(const ModelConfig&, const ComputePlace&);

}  // namespace rivulet::devices
