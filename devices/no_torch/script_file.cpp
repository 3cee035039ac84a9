// Counterpart of devices/torch/script_file.cpp in a build without LibTorch.
#include "devices/script_file.h"

namespace rivulet::devices {

Result<ScriptFacts> inspect_script(const std::string& path, std::span<const std::int64_t> /*input*/) {
  return Error{ErrorCode::unavailable, path + ": this build has no LibTorch (RIVULET_WITH_TORCH=OFF)"};
}

}  // namespace rivulet::devices
