#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>

/// An HTTP client that can send invalid requests.
namespace rivulet::testing {

/// A socket connected to a port of this machine, with a receive timeout of ten seconds; or -1.
inline int connect_to(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit{10, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) return fd;
  close(fd);
  return -1;
}

/// A socket that is connecting to a port of this machine, or -1.
inline int start_connecting(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  static_cast<void>(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to));
  return fd;
}

/// Reads until the peer closes.
inline std::string receive_all(int fd) {
  std::string answer;
  char buffer[4096];
  for (ssize_t n = 0; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;)
    answer.append(buffer, static_cast<std::size_t>(n));
  return answer;
}

/// Sends exactly `request` and returns the answer; empty without a server.
inline std::string raw(int port, const std::string& request) {
  const int fd = connect_to(port);
  if (fd < 0) return "";
  send(fd, request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer = receive_all(fd);
  close(fd);
  return answer;
}

}  // namespace rivulet::testing
