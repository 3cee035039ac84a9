#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/torch.h>

#include <exception>
#include <utility>

#include "devices/cuda_device.h"
#include "devices/process_memory.h"
#include "devices/trainer.h"

namespace rivulet::devices {

std::vector<std::pair<std::string, std::string>> numeric_library_facts() {
  std::vector<std::pair<std::string, std::string>> facts{
      {"LibTorch", TORCH_VERSION},
      {"BLAS", at::get_mkl_version()},
      {"oneDNN", at::get_mkldnn_version()},
      {"OpenMP", at::get_openmp_version()},
      {"CPU capability", at::get_cpu_capability()},
      {"threads", std::to_string(at::get_num_threads())},
      {"inter-op threads", std::to_string(at::get_num_interop_threads())},
  };
  for (auto& fact : cuda_facts()) facts.push_back(std::move(fact));
  return facts;
}

void prepare_process(int threads) {
  keep_freed_memory();
  at::set_num_threads(threads);
  try {
    at::set_num_interop_threads(1);
  } catch (const std::exception&) {
    // Already set: the library rejects a second call, and nothing here uses these threads.
    return;
  }
}

}  // namespace rivulet::devices
