#include "runtime/status/http/exchange.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <system_error>

namespace rivulet::runtime {
namespace {

Error failed(const std::string& why) {
  return {ErrorCode::unavailable, why};
}

Error failed(int code) {
  return failed(std::generic_category().message(code));
}

bool would_wait(int code) {
  return code == EAGAIN || code == EINPROGRESS;
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<Addresses> look_up(std::string host, int port) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (code != 0) return failed(gai_strerror(code));
  return Addresses(found, freeaddrinfo);
}

}  // namespace

Exchange::~Exchange() {
  if (fd_ >= 0) close(fd_);
}

Status Exchange::connect(const std::string& host, int port) {
  const auto addresses = look_up(host, port);
  if (!addresses) return addresses.error();
  Error last = failed("no address");
  for (const addrinfo* to = addresses.value().get(); to != nullptr; to = to->ai_next) {
    if (fd_ >= 0) close(fd_);
    fd_ = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) return failed(errno);
    if (::connect(fd_, to->ai_addr, to->ai_addrlen) != 0 && !would_wait(errno)) {
      last = failed(errno);
      continue;
    }
    if (Status ready = wait_for(POLLOUT); !ready) return ready;
    int problem = 0;
    socklen_t size = sizeof problem;
    getsockopt(fd_, SOL_SOCKET, SO_ERROR, &problem, &size);
    if (problem == 0) return ok();
    last = failed(problem);
  }
  return last;
}

Status Exchange::send(std::string_view text) {
  while (!text.empty()) {
    if (Status ready = wait_for(POLLOUT); !ready) return ready;
    const ssize_t n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0 && !would_wait(errno)) return failed(errno);
    text.remove_prefix(n < 0 ? 0 : static_cast<std::size_t>(n));
  }
  return ok();
}

Result<bool> Exchange::receive(std::string& text) {
  std::array<char, 16384> part{};
  for (;;) {
    if (Status ready = wait_for(POLLIN); !ready) return ready.error();
    const ssize_t n = recv(fd_, part.data(), part.size(), 0);
    if (n == 0) return false;
    if (n < 0 && !would_wait(errno)) return failed(errno);
    if (n < 0) continue;
    text.append(part.data(), static_cast<std::size_t>(n));
    return true;
  }
}

Status Exchange::wait_for(short events) const {
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(end_ - clock_.now()).count();
  pollfd one{.fd = fd_, .events = events, .revents = 0};
  const int ready = left <= 0 ? 0 : poll(&one, 1, static_cast<int>(left));
  if (ready > 0) return ok();
  return ready < 0 ? failed(errno) : failed("no whole answer in time");
}

}  // namespace rivulet::runtime
