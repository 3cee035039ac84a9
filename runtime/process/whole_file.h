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

/// System calls for files. Results and errno are those of the system calls with the same names. Tests replace
/// them to imitate full or failing disks, and disks that lose unsynced data. Stateless.
class FileOperations {
 public:
  virtual ~FileOperations() = default;
  virtual int open(const std::string& path, int flags) const;
  virtual void close(int fd) const;
  /// Returns the size of a regular file; nullopt for anything else.
  virtual std::optional<std::uint64_t> size(int fd) const;
  virtual ssize_t read(int fd, std::span<std::byte> bytes) const;
  virtual ssize_t write(int fd, std::span<const std::byte> bytes) const;
  virtual int sync(int fd) const;
  virtual int rename(const std::string& from, const std::string& to) const;
  virtual int remove(const std::string& path) const;
  /// Creates the folder and its parents; existing ones are not an error.
  virtual int make_folders(const std::string& path) const;
  /// Returns the paths of the regular files in a folder, unordered; empty if the folder is unreadable. Omits
  /// pipes, since reading them may block.
  virtual std::vector<std::string> files_in(const std::string& folder) const;
};
/// The real system calls.
const FileOperations& system_files() noexcept;

/// Returns "cannot WHAT PATH: why" with errno's reason, and code io.
Error file_trouble(const char* what, const std::string& path);

/// Syncs the folder itself: otherwise a power loss may undo renames in it. Returns 0, or -1 and errno.
int sync_folder(const std::string& folder, const FileOperations& files = system_files());

/// Replaces `path` atomically: writes and syncs a temporary file in the same folder, renames it, syncs the
/// folder. Removes the temporary file on failure. If only the last sync fails, the new content may be visible
/// but not durable. Errors name the file and the system's reason: io (the disk failed: EIO), unavailable (no
/// space, no permission, no such folder).
Status write_whole_file(const std::string& path, std::span<const std::byte> bytes,
                        const FileOperations& files = system_files());

/// Reads a whole regular file. Errors: io (also if it is larger than `bytes_max`, checked before any
/// allocation).
Result<std::vector<std::byte>> read_whole_file(const std::string& path, std::size_t bytes_max,
                                               const FileOperations& files = system_files());

}  // namespace rivulet::runtime
