#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "devices/device.h"

namespace rivulet::devices {

/// Makes an NVIDIA GPU device. State, batches and contributions stay in pinned host memory, so that copies to
/// and from the GPU are asynchronous. Trainers keep copies of the values on the GPU (docs/adr/0020). Errors:
/// unavailable (build without GPU support; no driver; no such GPU; with CUDA's message).
Result<std::unique_ptr<Device>> make_cuda_device(int index);

/// For doctor and build_info: {"CUDA", "13.2, driver for 13.2"}, {"GPU 0", "NAME, 15.7 GiB, compute
/// capability 8.7"}; in a build without GPU support: {"CUDA", "none"}.
std::vector<std::pair<std::string, std::string>> cuda_facts();

}  // namespace rivulet::devices
