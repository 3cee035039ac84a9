#include "sync/transport/gloo/dialer.h"

#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace rivulet::sync::gloo_door {
namespace {

constexpr Duration redial_after = std::chrono::milliseconds(400);
/// Concurrent attempts per peer: a round trip may take this many times redial_after.
constexpr std::size_t dials_max = 4;

socklen_t length_of(const sockaddr_storage& address) {
  return address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

}  // namespace

Dialer::~Dialer() {
  for (const Peer& peer : peers_)
    for (const int fd : peer.dials) ::close(fd);
}

void Dialer::dial(const sockaddr_storage& to, std::int64_t number, Answered answered) {
  peers_.push_back({.address = to, .number = number, .answered = std::move(answered)});
  dial_peer(peers_.back());
}

void Dialer::dial_peer(Peer& peer) const {
  peer.dialed_at = clock_.now();
  if (peer.dials.size() == dials_max) {
    ::close(peer.dials.front());
    peer.dials.erase(peer.dials.begin());
  }
  const int fd = ::socket(peer.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return;  // no descriptor left: retried with the next attempt
  const auto* to = reinterpret_cast<const sockaddr*>(&peer.address);
  if (::connect(fd, to, length_of(peer.address)) == 0 || errno == EINPROGRESS)
    peer.dials.push_back(fd);
  else
    ::close(fd);
}

/// Returns false if this attempt has failed.
bool Dialer::greet(int fd, std::int64_t number) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return false;
  return ::send(fd, &number, sizeof number, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof number);
}

/// Checks the attempts of a peer. Once it has answered, no attempt is left.
void Dialer::look(Peer& peer) {
  std::vector<pollfd> fds;
  for (const int fd : peer.dials) fds.push_back({fd, POLLOUT, 0});
  if (::poll(fds.data(), fds.size(), 0) <= 0) return;
  int answered = -1;
  for (std::size_t i = fds.size(); i-- > 0;) {
    if (fds[i].revents == 0) continue;
    const int fd = fds[i].fd;
    peer.dials.erase(peer.dials.begin() + static_cast<std::ptrdiff_t>(i));
    if (answered < 0 && greet(fd, peer.number))
      answered = fd;
    else
      ::close(fd);
  }
  if (answered < 0) return;
  for (const int fd : std::exchange(peer.dials, {})) ::close(fd);
  std::exchange(peer.answered, nullptr)(answered);
}

void Dialer::step(Duration longest) {
  std::vector<pollfd> fds;
  for (const Peer& peer : peers_)
    for (const int fd : peer.dials) fds.push_back({fd, POLLOUT, 0});
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(longest).count();
  ::poll(fds.data(), fds.size(), static_cast<int>(ms));
  const TimePoint now = clock_.now();
  for (Peer& peer : peers_) {
    look(peer);
    if (peer.answered && now - peer.dialed_at >= redial_after) dial_peer(peer);
  }
  std::erase_if(peers_, [](const Peer& peer) { return !peer.answered; });
}

}  // namespace rivulet::sync::gloo_door
