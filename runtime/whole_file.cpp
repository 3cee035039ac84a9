#include "runtime/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace rivulet::runtime {
namespace {

Error trouble(const char* what, const std::string& path) {
  return {ErrorCode::io, fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(errno))};
}

/// A full disk has room again one day, a broken one has not: who writes must be able to tell them apart.
Error write_trouble(const char* what, const std::string& path) {
  const ErrorCode code = errno == EIO ? ErrorCode::io : ErrorCode::unavailable;
  return {code, trouble(what, path).message};
}

/// An open file that closes itself.
class File {
 public:
  File(const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

bool write_all(const FileOperations& files, int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = files.write(fd, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;  // no reason given
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

bool read_all(int fd, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = read(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;  // it became shorter meanwhile
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

Status write_temporary(const std::string& path, std::span<const std::byte> bytes,
                       const FileOperations& files) {
  const File file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (file.fd() < 0 || !write_all(files, file.fd(), bytes)) return write_trouble("write", path);
  return files.sync(file.fd()) == 0 ? ok() : write_trouble("sync", path);
}

// Without it a rename may be lost with the power.
Status sync_folder_of(const std::string& path, const FileOperations& files) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const File file(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  return file.fd() >= 0 && files.sync(file.fd()) == 0 ? ok() : write_trouble("sync the folder of", path);
}

}  // namespace

ssize_t FileOperations::write(int fd, std::span<const std::byte> bytes) const {
  return ::write(fd, bytes.data(), bytes.size());
}
int FileOperations::sync(int fd) const {
  return ::fsync(fd);
}
int FileOperations::rename(const std::string& from, const std::string& to) const {
  return std::rename(from.c_str(), to.c_str());
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
    std::remove(temporary.c_str());
    return written;
  }
  return sync_folder_of(path, files);
}

Result<std::vector<std::byte>> read_whole_file(const std::string& path, std::size_t bytes_max) {
  const File file(path, O_RDONLY | O_NONBLOCK);  // a pipe in its place must not hold us
  struct stat info{};
  if (file.fd() < 0 || fstat(file.fd(), &info) != 0) return trouble("read", path);
  if (!S_ISREG(info.st_mode)) return Error{ErrorCode::io, path + " is not a file"};
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size > bytes_max) {
    return Error{ErrorCode::io,
                 fmt::format("{} has {} bytes, at most {} were expected", path, size, bytes_max)};
  }
  std::vector<std::byte> bytes(size);
  if (!read_all(file.fd(), bytes)) return trouble("read", path);
  return bytes;
}

}  // namespace rivulet::runtime
