#include "runtime/process/data_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "runtime/process/whole_file.h"

namespace rivulet::runtime {
namespace {

constexpr std::size_t mark_bytes_max = 4096;

std::string mark_in(const std::string& path) {
  return path + "/owner";
}

std::string text_of(const DataOwner& owner) {
  return fmt::format("job {}\ndevice {}\n", owner.job, owner.device);
}

std::optional<DataOwner> owner_in(std::string_view text) {
  const auto line = [&](std::string_view key) -> std::optional<std::string> {
    const auto end = text.find('\n');
    if (!text.starts_with(key) || end == std::string_view::npos) return std::nullopt;
    std::string value(text.substr(key.size(), end - key.size()));
    text.remove_prefix(end + 1);
    return value;
  };
  auto job = line("job ");
  auto device = line("device ");
  if (!job || !device || !text.empty()) return std::nullopt;
  return DataOwner{*std::move(job), *std::move(device)};
}

Error refused(const std::string& path, const std::string& why) {
  return {ErrorCode::invalid_config, "device.data_dir " + path + why};
}

}  // namespace

Status check_owner(const std::string& path, const DataOwner& owner) {
  std::error_code error;
  if (!std::filesystem::exists(mark_in(path), error) && !error) return ok();
  const auto mark = read_whole_file(mark_in(path), mark_bytes_max);
  if (!mark) return refused(path, " may belong to another device: " + mark.error().message);
  const auto found = owner_in({reinterpret_cast<const char*>(mark.value().data()), mark.value().size()});
  if (!found) return refused(path, " may belong to another device: the file 'owner' in it is invalid");
  if (found->job == owner.job && (owner.device.empty() || found->device == owner.device)) return ok();
  const std::string self = owner.device.empty() ? "" : "device " + owner.device + " of ";
  return refused(path,
                 fmt::format(" belongs to device {} of job {}, and this is {}job {}: choose another folder, "
                             "or correct device.id or job.name (to transfer its content, remove its "
                             "file 'owner')",
                             found->device, found->job, self, owner.job));
}

DataDir::~DataDir() {
  if (lock_ >= 0) close(lock_);
}

Status DataDir::take(const std::string& path, const DataOwner& owner) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return refused(path, ": " + error.message());
  if (auto own = check_owner(path, owner); !own) return own;  // before anything is written to it
  if (access(path.c_str(), W_OK) != 0) return refused(path, " is not writable");
  lock_ = open((path + "/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock_ < 0) return refused(path, ": cannot create its file 'lock'");
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return refused(path, " is in use by another rivulet run");
    return refused(path, " cannot be locked: " + std::system_category().message(errno));
  }
  path_ = path;
  owner_ = owner;
  return check_owner(path, owner);  // another process may have claimed it in between
}

Status DataDir::claim() {
  const std::string text = text_of(owner_);
  std::error_code error;
  if (std::filesystem::exists(mark_in(path_), error)) return ok();
  auto written = write_whole_file(mark_in(path_), std::as_bytes(std::span(text)));
  return written ? ok() : refused(path_, ": " + written.error().message);
}

}  // namespace rivulet::runtime
