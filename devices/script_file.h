#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

/// TorchScript files: users' models, saved with torch.jit.
namespace rivulet::devices {

/// Maximum size of a file, packed and unpacked.
inline constexpr std::uint64_t script_file_max_bytes = std::uint64_t{1} << 30;

struct ScriptTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// Contents of a file, and results of passes over rows of zeros.
struct ScriptFacts {
  std::string sha256;
  std::uint64_t bytes = 0;
  std::string signature;  ///< signature of forward()
  std::vector<ScriptTensor> parameters;
  std::vector<ScriptTensor> buffers;  ///< floating-point buffers, which are synchronized
  std::uint64_t parameter_numbers = 0;
  std::uint64_t buffer_numbers = 0;
  std::int64_t outputs = 0;  ///< outputs per row
  /// Why it cannot train on a single row (batch norm, for example), so that batch.min must be 2. Empty if it
  /// can.
  std::string one_row;
  double forward_ms = 0;  ///< time of the second pass on one row
  double backward_ms = 0;
};

/// `input`: shape of one row. Rejects the same files as a training device. Runs the file's code, which may
/// never return: run_in_subprocess() can stop it. Errors: io (unreadable, not a TorchScript file, a frozen
/// parameter, forward() rejects such rows or does not return one vector per row; with the library's message),
/// unavailable (a build without LibTorch).
Result<ScriptFacts> inspect_script(const std::string& path, std::span<const std::int64_t> input);

}  // namespace rivulet::devices
