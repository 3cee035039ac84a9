// Counterpart of devices/torch/torch_mlp.cpp in a build without LibTorch.
#include "devices/torch_mlp.h"

namespace rivulet::devices {

Result<std::unique_ptr<Trainer>> (*const make_torch_mlp)(const ModelConfig&, const MlpShape&,
                                                         const ComputePlace&) = nullptr;

}  // namespace rivulet::devices
