#include "devices/cuda_device.h"
#include "devices/device.h"

namespace rivulet::devices {

Result<std::unique_ptr<Device>> make_device(std::string_view type) {
  if (type == "cpu") return make_host_device();
  auto gpu = make_cuda_device(0);
  if (gpu || type == "cuda") return gpu;
  return make_host_device();
}

}  // namespace rivulet::devices
