// Three functions of Gloo's sockets, in place of LibTorch's (docs/adr/0023).
#include "sync/transport/gloo/gloo_socket.h"

#include <unistd.h>

#include <gloo/transport/tcp/socket.h>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace rivulet::sync::gloo_door {
namespace {

// Static, because Gloo's functions get only their own object, and its threads may call them at any time.
thread_local BehindDoor* next_door = nullptr;

using Doors = std::unordered_map<const void*, std::shared_ptr<PeerDoor>>;
struct Known {
  std::mutex mutex;
  Doors listeners;
  Doors received_rows;  ///< accepted; their number is not received yet
};

Known& known() {
  static auto* const all = new Known;  // never deleted: Gloo's last thread may end at any time
  return *all;
}

std::shared_ptr<PeerDoor> door_of(const void* listener) {
  const std::lock_guard lock(known().mutex);
  const auto it = known().listeners.find(listener);
  return it == known().listeners.end() ? nullptr : it->second;
}

std::shared_ptr<PeerDoor> take_accepted(const void* socket) {
  const std::lock_guard lock(known().mutex);
  const auto node = known().received_rows.extract(socket);
  return node.empty() ? nullptr : node.mapped();
}

}  // namespace

BehindDoor::BehindDoor(std::shared_ptr<PeerDoor> door) : door_(std::move(door)) {
  next_door = this;
}

BehindDoor::~BehindDoor() {
  next_door = nullptr;
}

std::shared_ptr<PeerDoor> BehindDoor::take() noexcept {
  if (next_door == nullptr) return nullptr;
  next_door->next_offsets_ = true;
  return next_door->door_;
}

DoorKept::~DoorKept() {
  const std::lock_guard lock(known().mutex);
  const auto mine = [&](const auto& entry) { return entry.second == door_; };
  std::erase_if(known().listeners, mine);
  std::erase_if(known().received_rows, mine);
}

}  // namespace rivulet::sync::gloo_door

namespace gloo::transport::tcp {

using namespace rivulet::sync::gloo_door;

void Socket::listen(int /*backlog*/) {
  auto door = BehindDoor::take();
  if (door == nullptr || !door->become(fd_)) throw std::runtime_error("a Gloo socket has no PeerDoor");
  const std::lock_guard lock(known().mutex);
  known().listeners[this] = std::move(door);
}

/// Returns null with EAGAIN if there is no connection. Any other error would make Gloo terminate the process.
std::shared_ptr<Socket> Socket::accept() {
  const auto door = door_of(this);
  const int fd = door == nullptr ? -1 : door->accept();
  if (fd < 0) {
    errno = EAGAIN;
    return nullptr;
  }
  auto socket = std::make_shared<Socket>(fd);
  const std::lock_guard lock(known().mutex);
  known().received_rows[socket.get()] = door;
  return socket;
}

/// Gloo reads only the first number of a connection from its sockets.
ssize_t Socket::read(void* buffer, std::size_t bytes) {
  ssize_t got = 0;
  do {
    got = ::read(fd_, buffer, bytes);
  } while (got < 0 && errno == EINTR);
  const auto door = take_accepted(this);
  PeerDoor::Number number = 0;
  if (door == nullptr || got < 0) return got;
  if (got != static_cast<ssize_t>(sizeof number)) return 0;
  std::memcpy(&number, buffer, sizeof number);
  const auto own = door->welcome(number);
  if (!own) return 0;  // too short: Gloo drops the connection
  std::memcpy(buffer, &*own, sizeof *own);
  return got;
}

}  // namespace gloo::transport::tcp
