#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "core/clock.h"
#include "core/time.h"

namespace rivulet::sync::gloo_door {

/// Calls the peers of one view that listen. A call that is not answered at once is followed by another beside
/// it, so that a connection stands soon after the path to the peer does: the kernel by itself would wait
/// twice as long before each further try. Used by one thread; nothing waits but step().
class Dialer {
 public:
  /// Takes the descriptor: connected, not blocking, the number is sent.
  using Answered = std::function<void(int fd)>;

  explicit Dialer(const Clock& clock) : clock_(clock) {}
  ~Dialer();
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;

  /// The first call leaves at once. `number`: what the connection begins with.
  void dial(const sockaddr_storage& to, std::int64_t number, Answered answered);
  /// Waits at most so long until a call is answered, and calls again whom it is time for.
  void step(Duration longest);

 private:
  struct Peer {
    sockaddr_storage address{};
    std::int64_t number = 0;
    Answered answered;
    std::vector<int> calls;  ///< descriptors, oldest first
    TimePoint called_at;
  };
  void call(Peer& peer) const;
  static bool greet(int fd, std::int64_t number);
  void look(Peer& peer);

  // constant
  const Clock& clock_;
  // its thread
  std::vector<Peer> peers_;  ///< not answered yet
};

}  // namespace rivulet::sync::gloo_door
