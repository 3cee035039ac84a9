#pragma once
#include <memory>

#include "sync/transport/gloo/peer_door.h"

namespace rivulet::sync::gloo_door {

/// Guards the next socket that Gloo listens on in this thread with a PeerDoor, until the object is destroyed.
class BehindDoor {
 public:
  explicit BehindDoor(std::shared_ptr<PeerDoor> door);
  ~BehindDoor();
  BehindDoor(const BehindDoor&) = delete;
  BehindDoor& operator=(const BehindDoor&) = delete;
  /// True once Gloo has requested the guarded socket (the door) through take(). False: this LibTorch uses its
  /// own, unguarded sockets.
  [[nodiscard]] bool attached() const noexcept { return next_offsets_; }
  /// Called by Gloo's socket: returns the door for the socket about to listen on this thread, or null.
  static std::shared_ptr<PeerDoor> take() noexcept;

 private:
  std::shared_ptr<PeerDoor> door_;
  bool next_offsets_ = false;
};

/// Keeps a door registered for Gloo's sockets. Must outlive them: without it they accept no connection.
class DoorKept {
 public:
  explicit DoorKept(std::shared_ptr<PeerDoor> door) : door_(std::move(door)) {}
  ~DoorKept();
  DoorKept(const DoorKept&) = delete;
  DoorKept& operator=(const DoorKept&) = delete;
  [[nodiscard]] PeerDoor& door() const noexcept { return *door_; }

 private:
  std::shared_ptr<PeerDoor> door_;
};

}  // namespace rivulet::sync::gloo_door
