#include "devices/cuda_device.h"

namespace rivulet::devices {

Result<std::unique_ptr<Device>> make_cuda_device(int) {
  return Error{ErrorCode::unavailable,
               "this build has no GPU support (built without -DRIVULET_WITH_CUDA=ON)"};
}

std::vector<std::pair<std::string, std::string>> cuda_facts() {
  return {{"CUDA", "none"}};
}

}  // namespace rivulet::devices
