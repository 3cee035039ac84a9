#pragma once
#include <memory>

#include "sync/transport/gloo/peer_door.h"

namespace rivulet::sync::gloo_door {

/// Puts a door before the next socket that Gloo listens with on this thread, until the end of the object.
class BehindDoor {
 public:
  explicit BehindDoor(std::shared_ptr<PeerDoor> door);
  ~BehindDoor();
  BehindDoor(const BehindDoor&) = delete;
  BehindDoor& operator=(const BehindDoor&) = delete;
  /// Gloo has asked for it. False: this LibTorch keeps its own sockets, and nobody guards them.
  [[nodiscard]] bool stands() const noexcept { return next_offsets_; }
  /// Of Gloo's socket: the door, for who is just about to listen on this thread; null if there is none.
  static std::shared_ptr<PeerDoor> take() noexcept;

 private:
  std::shared_ptr<PeerDoor> door_;
  bool next_offsets_ = false;
};

/// Keeps a door known to Gloo's sockets. Must outlive them: without it nobody comes in.
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
