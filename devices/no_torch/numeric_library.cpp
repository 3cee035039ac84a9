// Counterpart of devices/torch/numeric_library.cpp in a build without LibTorch.
#include "devices/process_memory.h"
#include "devices/trainer.h"

namespace rivulet::devices {

std::vector<std::pair<std::string, std::string>> numeric_library_facts() {
  return {{"LibTorch",
           "not in this build (RIVULET_WITH_TORCH=OFF), which supports only the models linear and mlp"}};
}

void prepare_process(int /*threads*/) {
  keep_freed_memory();
}

}  // namespace rivulet::devices
