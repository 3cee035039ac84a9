#include "runtime/process/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace rivulet::runtime {

Error file_trouble(const char* what, const std::string& path) {
  return {ErrorCode::io, fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(errno))};
}

namespace {

/// Returns the error of a failed write. Callers distinguish a full disk, which may recover, from a failed one
/// (EIO).
Error write_trouble(const char* what, const std::string& path) {
  const ErrorCode code = errno == EIO ? ErrorCode::io : ErrorCode::unavailable;
  return {code, file_trouble(what, path).message};
}

/// An open file that closes itself.
class File {
 public:
  File(const FileOperations& files, const std::string& path, int flags)
      : files_(files), fd_(files.open(path, flags)) {}
  ~File() {
    if (fd_ >= 0) files_.close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  const FileOperations& files_;
  int fd_;
};

bool write_all(const FileOperations& files, int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = files.write(fd, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;  // no reason reported
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

bool read_all(const FileOperations& files, int fd, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = files.read(fd, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;  // truncated while reading
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

Status write_temporary(const std::string& path, std::span<const std::byte> bytes,
                       const FileOperations& files) {
  const File file(files, path, O_WRONLY | O_CREAT | O_TRUNC);
  if (file.fd() < 0 || !write_all(files, file.fd(), bytes)) return write_trouble("write", path);
  return files.sync(file.fd()) == 0 ? ok() : write_trouble("sync", path);
}

Status sync_folder_of(const std::string& path, const FileOperations& files) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return sync_folder(folder.empty() ? "." : folder, files) == 0 ? ok()
                                                                : write_trouble("sync the folder of", path);
}

}  // namespace

int sync_folder(const std::string& folder, const FileOperations& files) {
  int why = 0;
  {
    const File file(files, folder, O_RDONLY | O_DIRECTORY);
    if (file.fd() < 0 || files.sync(file.fd()) != 0) why = errno;
  }
  if (why == 0) return 0;
  errno = why;  // restores what close() may have overwritten
  return -1;
}

int FileOperations::open(const std::string& path, int flags) const {
  return ::open(path.c_str(), flags | O_CLOEXEC, 0644);
}
void FileOperations::close(int fd) const {
  ::close(fd);
}
std::optional<std::uint64_t> FileOperations::size(int fd) const {
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return static_cast<std::uint64_t>(info.st_size);
}
ssize_t FileOperations::read(int fd, std::span<std::byte> bytes) const {
  return ::read(fd, bytes.data(), bytes.size());
}
ssize_t FileOperations::write(int fd, std::span<const std::byte> bytes) const {
  return ::write(fd, bytes.data(), bytes.size());
}
int FileOperations::sync(int fd) const {
  return ::fsync(fd);
}
int FileOperations::rename(const std::string& from, const std::string& to) const {
  return std::rename(from.c_str(), to.c_str());
}
int FileOperations::remove(const std::string& path) const {
  return std::remove(path.c_str());
}
int FileOperations::make_folders(const std::string& path) const {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return 0;
  errno = error.value();
  return -1;
}
std::vector<std::string> FileOperations::files_in(const std::string& folder) const {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    std::error_code gone;
    if (at->is_regular_file(gone)) files.push_back(at->path().string());
  }
  return files;
}

const FileOperations& system_files() noexcept {
  static const FileOperations system;
  return system;
}

Status write_whole_file(const std::string& path, std::span<const std::byte> bytes,
                        const FileOperations& files) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  Status written = write_temporary(temporary, bytes, files);
  if (written && files.rename(temporary, path) != 0) written = write_trouble("write", path);
  if (!written) {
    files.remove(temporary);
    return written;
  }
  return sync_folder_of(path, files);
}

Result<std::vector<std::byte>> read_whole_file(const std::string& path, std::size_t bytes_max,
                                               const FileOperations& files) {
  const File file(files, path, O_RDONLY | O_NONBLOCK);  // must not block on a pipe
  if (file.fd() < 0) return file_trouble("read", path);
  const auto size = files.size(file.fd());
  if (!size) return Error{ErrorCode::io, path + " is not a file"};
  if (*size > bytes_max) {
    return Error{ErrorCode::io, fmt::format("{} has {} bytes, maximum {}", path, *size, bytes_max)};
  }
  std::vector<std::byte> bytes(*size);
  if (!read_all(files, file.fd(), bytes)) return file_trouble("read", path);
  return bytes;
}

}  // namespace rivulet::runtime
