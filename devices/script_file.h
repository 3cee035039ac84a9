#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

/// TorchScript files: models that somebody else made and saved with torch.jit.
namespace rivulet::devices {

/// No larger file is read.
inline constexpr std::uint64_t script_file_max_bytes = std::uint64_t{1} << 30;

struct ScriptTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// What is in a file, and what one batch of zeros comes to.
struct ScriptFacts {
  std::string sha256;
  std::uint64_t bytes = 0;
  std::string signature;  ///< of forward()
  std::vector<ScriptTensor> parameters;
  std::vector<ScriptTensor> buffers;  ///< of floating point: those that training agrees on
  std::uint64_t parameter_numbers = 0;
  std::uint64_t buffer_numbers = 0;
  std::vector<std::int64_t> output;  ///< for one row: without the first dimension
  double forward_ms = 0;             ///< of one row, the second time
  double backward_ms = 0;
};

/// `input`: shape of one row. The file's code is run, so it may never return: apart() can end it. Errors: io
/// (cannot be read, is no such file, forward() refuses such rows: in the library's words), unavailable (a
/// build without LibTorch).
Result<ScriptFacts> inspect_script(const std::string& path, std::span<const std::int64_t> input);

}  // namespace rivulet::devices
