#pragma once
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "core/result.h"
#include "core/time.h"
#include "sync/transport/transport.h"

/// Private to the Gloo transport: the parts of c10d::ProcessGroupGloo that it uses, without Gloo's headers.
namespace rivulet::sync::gloo_door {

enum class Waited : std::uint8_t { done, woken, broken };

/// One posted send or receive. May be destroyed before it is done: its buffer is not touched afterwards.
class Work {
 public:
  virtual ~Work() = default;
  /// Waits without a limit. woken: wake() was called, wait again. broken: `why` describes how the
  /// connection ended.
  virtual Waited wait(std::string& why) = 0;
  /// Makes the current or the next wait() return early. Any thread.
  virtual void wake() noexcept = 0;
};

/// The last message of a rank that gives up the view: the rank it lost, and how.
struct Obituary {
  std::uint32_t rank = 0;
  ErrorCode code = ErrorCode::peer_lost;
};

/// State of a peer's connection.
struct Pulse {
  bool broken = false;
  std::optional<Obituary> reported;
  std::string why;
  std::optional<std::string> refused;  ///< why its message was rejected
};

/// Cancels connecting. Thread-safe.
class Cancel {
 public:
  void set();
  /// Waits up to `d`. Returns true when cancelled.
  bool wait_for(Duration d);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

/// A connected full mesh. send() and receive() from one thread at a time, pulse() and log() from one thread.
/// Destroy every Work first: works keep the sockets open.
class Group {
 public:
  virtual ~Group() = default;
  virtual Result<std::unique_ptr<Work>> send(std::uint32_t peer, int tag,
                                             std::span<const std::byte> bytes) = 0;
  virtual Result<std::unique_ptr<Work>> receive(std::uint32_t peer, int tag, std::span<std::byte> bytes) = 0;
  /// Polls the sentinel, a receive that only an obituary matches. Takes 1 to 3 microseconds.
  virtual Pulse pulse(std::uint32_t peer) = 0;
  /// Returns the number of messages received from a peer with one tag, in the order of the posted receives.
  /// Any thread.
  [[nodiscard]] virtual std::uint64_t arrived(std::uint32_t peer, int tag) const = 0;
  /// Returns how the peer's connection ended; empty while it is open. Any thread.
  [[nodiscard]] virtual std::optional<std::string> broken(std::uint32_t peer) const = 0;
  /// Reports the rank that this one lost to all peers whose sockets accept the message immediately.
  virtual void log(const Obituary& last_words) = 0;
};

struct ConnectRequest {
  std::string address;    ///< numeric, local
  std::string advertise;  ///< numeric, what peers dial; empty = address
  int port = 0;           ///< port to listen on; 0: any free one
  Duration deadline{};
  const Clock* clock = nullptr;
  ViewSpec view;
  AddressBook* book = nullptr;
  Cancel* cancel = nullptr;
  std::function<void(Lane)> on_arrival = {};  ///< called on Gloo's thread after a whole message
};
struct ConnectFailure {
  Error error;
  int rank = -1;
};

/// Waits until the mesh is connected: as long as there is progress, up to three deadlines. On failure returns
/// null and sets `failure`.
std::unique_ptr<Group> connect_group(const ConnectRequest& request, ConnectFailure& failure);

/// Size of c10d::ProcessGroupGloo, for the test that checks the shim.
std::size_t process_group_bytes() noexcept;

}  // namespace rivulet::sync::gloo_door
