#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "devices/device.h"

namespace rivulet::devices {

/// A GPU of NVIDIA's. The state, batches and contributions stay in the host's memory, pinned, so that copies
/// to and from the GPU need nobody who waits for them; trainers keep copies of the numbers there
/// (docs/adr/0020). Errors: unavailable (this build knows nothing of GPUs; no driver; no such GPU; in CUDA's
/// words).
Result<std::unique_ptr<Device>> make_cuda_device(int index);

/// For doctor and build_info: {"CUDA", "13.2, driver for 13.2"}, {"GPU 0", "NAME, 15.7 GiB, compute
/// capability 8.7"}; of a build without: {"CUDA", "none"}.
std::vector<std::pair<std::string, std::string>> cuda_facts();

}  // namespace rivulet::devices
