#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "core/clock.h"
#include "core/time.h"

namespace rivulet::sync::gloo_door {

/// Connects to those peers of one view that listen. If an attempt gets no immediate answer, starts a parallel
/// one. So the connection is established soon after the route to the peer is up: the kernel alone would
/// double the delay before each retry. Used by one thread; only step() blocks.
class Dialer {
 public:
  /// Receives the descriptor, connected and non-blocking, after the number was sent.
  using Answered = std::function<void(int fd)>;

  explicit Dialer(const Clock& clock) : clock_(clock) {}
  ~Dialer();
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;

  /// Starts the first attempt immediately. `number`: the first bytes of the connection.
  void dial(const sockaddr_storage& to, std::int64_t number, Answered answered);
  /// Waits up to `longest` for an answer, and starts further attempts that are due.
  void step(Duration longest);

 private:
  struct Peer {
    sockaddr_storage address{};
    std::int64_t number = 0;
    Answered answered;
    std::vector<int> dials;  ///< descriptors, oldest first
    TimePoint dialed_at;
  };
  void dial_peer(Peer& peer) const;
  static bool greet(int fd, std::int64_t number);
  void look(Peer& peer);

  // constant
  const Clock& clock_;
  // its thread
  std::vector<Peer> peers_;  ///< not connected yet
};

}  // namespace rivulet::sync::gloo_door
