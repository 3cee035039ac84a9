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

namespace rivulet::sync::gloo_door {

/// The listening socket of one view, and who comes in through it. Gloo would let in everybody, keep a
/// descriptor of each until the view ends, and end the process when there are no more. Here a connection has
/// to begin with a number that a member got from this view's address book, each counts once, and when the
/// mesh stands the door is shut: the kernel drops who knocks. Others are closed before Gloo sees them. At
/// worst non-members fill the kernel's queue, members cannot connect, and the view is lost. Thread-safe.
class PeerDoor {
 public:
  using Number = std::int64_t;
  /// Who has said nothing is held back by the kernel for some seconds. Those that it lets through all the
  /// same come in, this many more than members are awaited at most: a member's number may be on its way.
  static constexpr std::size_t silent_most = 32;

  /// Listens. `port` 0: any that is free. Errors: unavailable (names the address, and sync.port if that is
  /// taken).
  static Result<std::shared_ptr<PeerDoor>> open(const std::string& address, int port);
  ~PeerDoor();
  PeerDoor(const PeerDoor&) = delete;
  PeerDoor& operator=(const PeerDoor&) = delete;

  [[nodiscard]] int port() const noexcept { return port_; }
  /// From now on `fd` is this socket. False: errno says why.
  [[nodiscard]] bool become(int fd) const noexcept;
  /// What a member has to send for Gloo's `own` number: a random one. Gloo counts from 0 in each view.
  Number announce(Number own);
  /// The next connection that comes in, a descriptor of the caller's; -1: nobody for now. Closes others, so
  /// many in one call that nobody else on the thread waits long.
  int accept();
  /// Gloo's number for the one that an accepted connection began with; empty: a non-member.
  std::optional<Number> welcome(Number said);
  /// Nobody comes in any more.
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
  std::map<Number, Number> awaited_;  ///< what is sent -> Gloo's own
  std::size_t announced_ = 0;
  std::size_t silent_ = 0;  ///< let in so far without having sent anything
  bool shut_ = false;
  int reserve_ = -1;  ///< a descriptor to have one left when there are no more
};

}  // namespace rivulet::sync::gloo_door
