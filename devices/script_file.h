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
  std::int64_t outputs = 0;  ///< numbers that each row comes to
  /// Why it cannot be trained with a single row, as one with batch norm cannot, or empty: batch.min is 2
  /// then.
  std::string one_row;
  double forward_ms = 0;  ///< of one row, the second time
  double backward_ms = 0;
};

/// `input`: shape of one row. What is refused here is refused by a device that is to train it, and the other
/// way round. The file's code is run, so it may never return: apart() can end it. Errors: io (cannot be read,
/// is no such file, has a frozen parameter, forward() refuses such rows or gives other than one list of
/// numbers for each: in the library's words), unavailable (a build without LibTorch).
Result<ScriptFacts> inspect_script(const std::string& path, std::span<const std::int64_t> input);

}  // namespace rivulet::devices
