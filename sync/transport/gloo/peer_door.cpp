#include "sync/transport/gloo/peer_door.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "core/check.h"

namespace rivulet::sync::gloo_door {
namespace {

constexpr int backlog = 256;
constexpr int at_once = 64;  ///< connections closed in one call

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses look_up(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  addrinfo* list = nullptr;
  if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &list) != 0) list = nullptr;
  return {list, &freeaddrinfo};
}

Error cannot_listen(const std::string& address, int port, int code) {
  const std::string key =
      port == 0 ? "sync.bind = \"" + address + "\"" : "sync.port = " + std::to_string(port);
  const std::string where = address + (port == 0 ? "" : ", port " + std::to_string(port));
  if (code == EADDRINUSE)
    return {ErrorCode::unavailable, key + ": " + where + " is in use by another device or program"};
  return {ErrorCode::unavailable,
          key + ": cannot listen on " + where + ": " + std::generic_category().message(code)};
}

void set_option(int fd, int level, int option, int value) {
  // Without this option more non-members reach accept(), with no other effect.
  static_cast<void>(setsockopt(fd, level, option, &value, sizeof value));
}

int port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(address).sin_port
                                            : reinterpret_cast<sockaddr_in6&>(address).sin6_port);
}

int spare_descriptor() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

}  // namespace

Result<std::shared_ptr<PeerDoor>> PeerDoor::open(const std::string& address, int port, Duration silent_for) {
  const Addresses to = look_up(address, port);
  if (to == nullptr) return cannot_listen(address, port, EADDRNOTAVAIL);
  const int fd = ::socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return cannot_listen(address, port, errno);
  // The kernel may still have connections of the previous view on this port.
  set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  set_option(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT,
             static_cast<int>(std::chrono::ceil<std::chrono::seconds>(silent_for).count()));
  if (::bind(fd, to->ai_addr, to->ai_addrlen) != 0 || ::listen(fd, backlog) != 0) {
    const int code = errno;
    ::close(fd);
    return cannot_listen(address, port, code);
  }
  return std::shared_ptr<PeerDoor>(new PeerDoor(fd, port_of(fd)));
}

PeerDoor::PeerDoor(int fd, int port) : fd_(fd), port_(port), reserve_(spare_descriptor()) {}

PeerDoor::~PeerDoor() {
  ::close(fd_);
  if (reserve_ >= 0) ::close(reserve_);
}

bool PeerDoor::become(int fd) const noexcept {
  return ::dup3(fd_, fd, O_CLOEXEC) >= 0;
}

PeerDoor::Number PeerDoor::announce(Number own) {
  const std::lock_guard lock(mutex_);
  ++announced_;
  while (true) {
    std::uint64_t bits = 0;
    const auto got = getrandom(&bits, sizeof bits, 0);  // a request this small is always served as a whole
    RIVULET_CHECK(got == static_cast<ssize_t>(sizeof bits), "the kernel returned no random numbers");
    const auto said = static_cast<Number>(bits >> 1U);
    if (awaited_.emplace(said, own).second) return said;
  }
}

int PeerDoor::accept() {
  const std::lock_guard lock(mutex_);
  for (int closed = 0; closed < at_once; ++closed) {
    const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
      turn_all_away();
    if (fd < 0 && errno != EINTR && errno != ECONNABORTED && errno != EPROTO) return -1;
    if (fd < 0) continue;  // a connection that was closed before
    if (may_enter(fd)) return fd;
    ::close(fd);
    ++turned_away_;
  }
  return -1;
}

bool PeerDoor::may_enter(int fd) {
  if (shut_) return false;
  Number said = 0;
  const ssize_t n = ::recv(fd, &said, sizeof said, MSG_PEEK | MSG_DONTWAIT);
  if (n == static_cast<ssize_t>(sizeof said)) return awaited_.contains(said);
  const bool silent = n < 0 && errno == EAGAIN;
  return silent && silent_++ < silent_most + announced_;
}

/// Closes all waiting connections when no descriptor is left: a waiting one would wake the thread again and
/// again. Frees a reserved descriptor to accept them. Members are closed too, and return with the next view.
void PeerDoor::turn_all_away() {
  if (reserve_ >= 0) ::close(std::exchange(reserve_, -1));
  for (int i = 0; i < backlog; ++i) {
    const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) break;
    ::close(fd);
    ++turned_away_;
  }
  reserve_ = spare_descriptor();
  errno = EAGAIN;
}

std::optional<PeerDoor::Number> PeerDoor::welcome(Number said) {
  const std::lock_guard lock(mutex_);
  const auto it = awaited_.find(said);
  if (it == awaited_.end()) return std::nullopt;
  const Number own = it->second;
  awaited_.erase(it);
  return own;
}

void PeerDoor::shut() {
  sock_filter nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog filter{1, nothing};
  // If the kernel has no filters, accept() closes new connections.
  static_cast<void>(setsockopt(fd_, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter));
  const std::lock_guard lock(mutex_);
  shut_ = true;
  awaited_.clear();
}

}  // namespace rivulet::sync::gloo_door
