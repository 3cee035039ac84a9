#include "runtime/process/data_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace rivulet::runtime {

DataDir::~DataDir() {
  if (lock_ >= 0) close(lock_);
}

Status DataDir::take(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return Error{ErrorCode::invalid_config, "device.data_dir " + path + why};
  };
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return refuse(": " + error.message());
  if (access(path.c_str(), W_OK) != 0) return refuse(" is not writable");
  lock_ = open((path + "/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock_ < 0) return refuse(": cannot create the file lock there");
  if (flock(lock_, LOCK_EX | LOCK_NB) == 0) return ok();
  if (errno == EWOULDBLOCK) return refuse(" is in use by another rivulet run");
  return refuse(" cannot be locked: " + std::system_category().message(errno));
}

}  // namespace rivulet::runtime
