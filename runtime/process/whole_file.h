#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace rivulet::runtime {

/// What keeping files asks of the system, as the calls of these names: answers, and errno where it fails. A
/// seam for disks that are full, fail or lose what was not synced. Stateless.
class FileOperations {
 public:
  virtual ~FileOperations() = default;
  virtual int open(const std::string& path, int flags) const;
  virtual void close(int fd) const;
  /// Bytes of a regular file; nullopt: it is none.
  virtual std::optional<std::uint64_t> size(int fd) const;
  virtual ssize_t read(int fd, std::span<std::byte> bytes) const;
  virtual ssize_t write(int fd, std::span<const std::byte> bytes) const;
  virtual int sync(int fd) const;
  virtual int rename(const std::string& from, const std::string& to) const;
  virtual int remove(const std::string& path) const;
  /// The folder and those above it; those that are there already are no error.
  virtual int make_folders(const std::string& path) const;
  /// Paths of the regular files in a folder, in no order; none if it cannot be read. A pipe is not a file: it
  /// must not hold us.
  virtual std::vector<std::string> files_in(const std::string& folder) const;
};
/// The system itself.
const FileOperations& system_files() noexcept;

/// "cannot WHAT PATH: why", with the why of errno, as io.
Error file_trouble(const char* what, const std::string& path);

/// Without it renames in the folder may be lost with the power. 0, or -1 and errno.
int sync_folder(const std::string& folder, const FileOperations& files = system_files());

/// Replaces `path` as a whole or not at all: temp name in the same folder, synced, renamed, folder synced. A
/// file that could not be written leaves no temp name behind. Only if the last of these steps fails, the new
/// content may be there, and may be gone after a loss of power. Errors, which name the file and the system's
/// reason: io (the disk failed: EIO), unavailable (no room, no right, no such folder).
Status write_whole_file(const std::string& path, std::span<const std::byte> bytes,
                        const FileOperations& files = system_files());

/// All of a regular file. Errors: io (also when it is larger than `bytes_max`; nothing is allocated then).
Result<std::vector<std::byte>> read_whole_file(const std::string& path, std::size_t bytes_max,
                                               const FileOperations& files = system_files());

}  // namespace rivulet::runtime
