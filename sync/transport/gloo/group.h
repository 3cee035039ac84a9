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

/// Private to the Gloo transport: the few things it uses of c10d::ProcessGroupGloo, without its headers.
namespace rivulet::sync::gloo_door {

enum class Waited : std::uint8_t { done, woken, broken };

/// One posted send or receive. Dropping it before it is done is allowed: its bytes are not touched
/// afterwards.
class Work {
 public:
  virtual ~Work() = default;
  /// Waits for as long as it takes. woken: wake() was called, wait again; broken: `why` is how the
  /// connection ended.
  virtual Waited wait(std::string& why) = 0;
  /// Makes a wait() return early, now or the next one. From any thread.
  virtual void wake() noexcept = 0;
};

/// What a rank sends last, when it gives the view up: whom it lost and how.
struct Obituary {
  std::uint32_t rank = 0;
  ErrorCode code = ErrorCode::peer_lost;
};

/// How a peer's connection looks.
struct Pulse {
  bool broken = false;
  std::optional<Obituary> told;
  std::string why;
  std::optional<std::string> refused;  ///< it has sent an unexpected message, and why
};

/// Ends a connecting group early. Thread-safe.
class Cancel {
 public:
  void set();
  /// Waits at most `d`; true when cancelled.
  bool wait_for(Duration d);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

/// A connected full mesh. send() and receive() from one thread at a time; pulse() and say() from one thread.
/// Destroy every Work first: they keep the sockets open.
class Group {
 public:
  virtual ~Group() = default;
  virtual Result<std::unique_ptr<Work>> send(std::uint32_t peer, int tag,
                                             std::span<const std::byte> bytes) = 0;
  virtual Result<std::unique_ptr<Work>> receive(std::uint32_t peer, int tag, std::span<std::byte> bytes) = 0;
  /// Looks at the sentinel, a receive that only an obituary ever matches. 1 to 3 microseconds.
  virtual Pulse pulse(std::uint32_t peer) = 0;
  /// Messages that have come from a peer by one tag, so far. As the receives of a tag, in the order in which
  /// they were posted. Of any thread.
  [[nodiscard]] virtual std::uint64_t arrived(std::uint32_t peer, int tag) const = 0;
  /// How its connection ended; empty: it has not. Of any thread.
  [[nodiscard]] virtual std::optional<std::string> broken(std::uint32_t peer) const = 0;
  /// Sends all peers the rank that this one lost, as far as the sockets take it at once.
  virtual void say(const Obituary& last_words) = 0;
};

struct ConnectRequest {
  std::string address;    ///< numeric, local
  std::string advertise;  ///< numeric, what peers dial; empty = address
  int port = 0;           ///< to listen on; 0: any that is free
  Duration deadline{};
  const Clock* clock = nullptr;
  ViewSpec view;
  AddressBook* book = nullptr;
  Cancel* cancel = nullptr;
  std::function<void(Lane)> on_arrival = {};  ///< on Gloo's thread: a message is there as a whole
};
struct ConnectFailure {
  Error error;
  int rank = -1;
};

/// Waits until the mesh stands: while something comes, and for three deadlines at most. Null and `failure` if
/// it does not.
std::unique_ptr<Group> connect_group(const ConnectRequest& request, ConnectFailure& failure);

/// For the test that guards the shim.
std::size_t process_group_bytes() noexcept;

}  // namespace rivulet::sync::gloo_door
