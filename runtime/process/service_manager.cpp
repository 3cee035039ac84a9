#include "runtime/process/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace rivulet::runtime {
namespace {

constexpr std::size_t phrase_most = 200;

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): called before threads start
  return value == nullptr ? "" : value;
}

std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end ? value : 0;
}

}  // namespace

ServiceManager::ServiceManager(std::string socket, Duration watchdog)
    : socket_(std::move(socket)), watchdog_(watchdog) {
  if (socket_.size() < 2 || socket_.size() >= sizeof(sockaddr_un::sun_path)) return;
  if (socket_.front() == '/' || socket_.front() == '@')
    fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

ServiceManager ServiceManager::from_environment() {
  const std::string pid = variable("WATCHDOG_PID");
  const bool watched = pid.empty() || number(pid) == getpid();
  const std::int64_t us = watched ? std::max<std::int64_t>(number(variable("WATCHDOG_USEC")), 0) : 0;
  return {variable("NOTIFY_SOCKET"), std::chrono::microseconds(us)};
}

ServiceManager::ServiceManager(ServiceManager&& other) noexcept
    : socket_(std::move(other.socket_)), watchdog_(other.watchdog_), fd_(std::exchange(other.fd_, -1)) {}

ServiceManager::~ServiceManager() {
  if (fd_ >= 0) close(fd_);
}

void ServiceManager::send(const std::string& message) const {
  if (fd_ < 0) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, socket_.data(), socket_.size());
  if (socket_.front() == '@') to.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  // Messages to a manager that does not read are dropped, even if its watchdog then kills this process.
  static_cast<void>(sendto(fd_, message.data(), message.size(), MSG_NOSIGNAL,
                           reinterpret_cast<const sockaddr*>(&to), size));
}

void ServiceManager::ready() {
  send("READY=1\nMAINPID=" + std::to_string(getpid()));
}

void ServiceManager::notify(std::string_view phrase) {
  if (fd_ < 0) return;
  std::string line(phrase.substr(0, phrase_most));
  std::replace_if(line.begin(), line.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  if (line == notified_) return;
  send("STATUS=" + line);
  notified_ = std::move(line);
}

void ServiceManager::alive(TimePoint now) {
  if (fd_ < 0 || watchdog_ <= Duration(0) || now < next_beat_) return;
  send("WATCHDOG=1");
  next_beat_ = now + watchdog_ / 4;
}

void ServiceManager::stopping() {
  send("STOPPING=1");
}

}  // namespace rivulet::runtime
