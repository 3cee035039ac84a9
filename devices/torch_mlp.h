#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/result.h"
#include "devices/trainer.h"

namespace rivulet::devices {

/// Checked keys of model `mlp`.
struct MlpShape {
  std::vector<std::int64_t> hidden;
  bool tanh = false;  ///< else ReLU
  bool skip = false;  ///< devices/columns.h, skip_over_features()
};

/// Makes model `mlp` on LibTorch, for wide layers, GPUs and bfloat16. Null in a build without LibTorch.
/// Errors: as make_torch_trainer().
extern Result<std::unique_ptr<Trainer>> (*const make_torch_mlp)(const ModelConfig&, const MlpShape&,
                                                                const ComputePlace&);

}  // namespace rivulet::devices
