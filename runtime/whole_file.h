#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace rivulet::runtime {

/// Replaces `path` as a whole or not at all: temp name in the same folder, synced, renamed, folder synced.
/// Errors: io (names the file and the system's reason).
Status write_whole_file(const std::string& path, std::span<const std::byte> bytes);

/// All of a regular file. Errors: io (also when it is larger than `bytes_max`; nothing is allocated then).
Result<std::vector<std::byte>> read_whole_file(const std::string& path, std::size_t bytes_max);

}  // namespace rivulet::runtime
