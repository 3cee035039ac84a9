#pragma once
#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace rivulet::runtime {

/// What writing a file asks of the system, as the calls of these names: answers, and errno where it fails. A
/// seam for disks that are full or lie. Stateless.
class FileOperations {
 public:
  virtual ~FileOperations() = default;
  virtual ssize_t write(int fd, std::span<const std::byte> bytes) const;
  virtual int sync(int fd) const;
  virtual int rename(const std::string& from, const std::string& to) const;
};
/// The system itself.
const FileOperations& system_files() noexcept;

/// Replaces `path` as a whole or not at all: temp name in the same folder, synced, renamed, folder synced. A
/// file that could not be written leaves no temp name behind. Only if the last of these steps fails, the new
/// content may be there, and may be gone after a loss of power. Errors, which name the file and the system's
/// reason: io (the disk failed: EIO), unavailable (no room, no right, no such folder).
Status write_whole_file(const std::string& path, std::span<const std::byte> bytes,
                        const FileOperations& files = system_files());

/// All of a regular file. Errors: io (also when it is larger than `bytes_max`; nothing is allocated then).
Result<std::vector<std::byte>> read_whole_file(const std::string& path, std::size_t bytes_max);

}  // namespace rivulet::runtime
