#pragma once
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/check.h"

/// Plain TCP, the limit of transports. Errors end the program.
namespace rivulet::bench {

/// Owns a file descriptor, or none.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) { RIVULET_CHECK(fd >= 0, "socket failed"); }
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    Socket gone(std::move(other));
    return *this;
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

inline sockaddr_in address_of(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  RIVULET_CHECK(inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1, "invalid address");
  return address;
}

/// Listens on a free port of `host`.
struct Listener {
  Socket socket;
  std::uint16_t port = 0;
};
inline Listener listen_on(const std::string& host) {
  Listener listener{Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  sockaddr_in own = address_of(host, 0);
  socklen_t size = sizeof own;
  const int fd = listener.socket.fd();
  RIVULET_CHECK(::bind(fd, reinterpret_cast<sockaddr*>(&own), size) == 0, "bind failed");
  RIVULET_CHECK(::listen(fd, 1) == 0, "listen failed");
  RIVULET_CHECK(::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0, "getsockname failed");
  listener.port = ntohs(own.sin_port);
  return listener;
}

inline Socket accept_from(const Listener& listener) {
  return Socket(::accept4(listener.socket.fd(), nullptr, nullptr, SOCK_CLOEXEC));
}

inline Socket dial(const std::string& host, std::uint16_t port) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto to = address_of(host, port);
  const auto* address = reinterpret_cast<const sockaddr*>(&to);
  RIVULET_CHECK(::connect(socket.fd(), address, sizeof to) == 0, "connect failed");
  return socket;
}

/// Returns both ends of a loopback connection.
inline std::pair<Socket, Socket> connected_pair() {
  const Listener listener = listen_on("127.0.0.1");
  Socket out = dial("127.0.0.1", listener.port);
  return {std::move(out), accept_from(listener)};
}

/// Sends all bytes. Returns early if the other end is closed.
inline void send_all(const Socket& socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

/// Receives at least one byte. Returns the number of bytes.
inline std::size_t receive_some(const Socket& socket, std::span<std::byte> into) {
  const ssize_t n = ::recv(socket.fd(), into.data(), into.size(), 0);
  RIVULET_CHECK(n > 0, "recv failed");
  return static_cast<std::size_t>(n);
}

/// Moves the calling thread, and threads that it creates later, into a network namespace.
inline void enter_namespace(const std::string& name) {
  const int fd = ::open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  RIVULET_CHECK(fd >= 0 && ::setns(fd, CLONE_NEWNET) == 0, "cannot enter the namespace");
  ::close(fd);
}

}  // namespace rivulet::bench
