#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/result.h"
#include "core/time.h"

namespace rivulet::sync::gloo_door {

/// The listening socket of one view, with a check of incoming connections. Gloo alone would accept all of
/// them, keep a descriptor of each until the view ends, and abort the process when no descriptor is left.
/// Here a connection must begin with a number that a member got from this view's address book, and each
/// number is valid once. When the mesh is connected the door is shut: the kernel drops further attempts.
/// Other connections are closed before Gloo sees them. At worst non-members fill the kernel's queue, members
/// cannot connect, and the view is lost. Thread-safe.
class PeerDoor {
 public:
  using Number = std::int64_t;
  /// The kernel defers connections that have sent nothing (see open()). Of the silent connections that
  /// arrive anyway, accepts this many more than expected members: a member's number may still be on its way.
  static constexpr std::size_t silent_most = 32;

  /// Listens. `port` 0: any free one. For at least `silent_for`, rounded up to the kernel's steps, the kernel
  /// withholds a connection that has sent nothing from accept(): as long as the view may take to connect.
  /// Errors: unavailable (names the address, and sync.port if it is taken).
  static Result<std::shared_ptr<PeerDoor>> open(const std::string& address, int port, Duration silent_for);
  ~PeerDoor();
  PeerDoor(const PeerDoor&) = delete;
  PeerDoor& operator=(const PeerDoor&) = delete;

  [[nodiscard]] int port() const noexcept { return port_; }
  /// Makes `fd` a duplicate of this socket. False: errno holds the reason.
  [[nodiscard]] bool become(int fd) const noexcept;
  /// Returns the random number that a member must send instead of Gloo's `own`, which counts from 0 per view.
  Number announce(Number own);
  /// Returns the descriptor of the next valid connection, now owned by the caller; -1 if none. Closes invalid
  /// ones, but only a limited number per call, so that the thread is not blocked for long.
  int accept();
  /// Returns Gloo's number for the one that an accepted connection began with; empty for a non-member.
  std::optional<Number> welcome(Number said);
  /// Accepts no more connections.
  void shut();
  [[nodiscard]] std::uint64_t turned_away() const noexcept { return turned_away_; }

 private:
  PeerDoor(int fd, int port);
  bool may_enter(int fd);
  void turn_all_away();

  // constant
  const int fd_;
  const int port_;
  // shared
  std::atomic<std::uint64_t> turned_away_{0};
  std::mutex mutex_;
  std::map<Number, Number> awaited_;  ///< sent number -> Gloo's own
  std::size_t announced_ = 0;
  std::size_t silent_ = 0;  ///< connections let in before they had sent anything
  bool shut_ = false;
  int reserve_ = -1;  ///< descriptor to be closed when no other is left
};

}  // namespace rivulet::sync::gloo_door
