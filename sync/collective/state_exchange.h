#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "sync/transport/transport.h"

namespace rivulet::sync {

/// First exchange of a view: ranks without the view's target receive its bytes from ranks that have it, then
/// all ranks wait for each other. The bytes are opaque and checked on arrival: 64-byte header, one checksum
/// per MiB, the bytes. The i-th rank without the target receives it from holder i modulo the number of
/// holders.
///
///   holder:  give(bytes)          -> confirm() -> poll() ... done
///   other:   take() -> poll() ... -> taken()  -> confirm() -> poll() ... done
///
/// The death of a holder fails the view like any other death; the next view has different holders or a
/// different target. The deadline is `give_up_at`: ranks wait for a slow transfer, but not for a silent peer.
/// Owner: the train thread. poll() never waits. Lives inside a View, longer than its transport's operations.
class StateExchange {
 public:
  /// Rejects states above `bytes_max` before it allocates memory.
  StateExchange(Transport& transport, const ViewSpec& view, std::size_t bytes_max, TimePoint give_up_at);
  ~StateExchange();
  StateExchange(const StateExchange&) = delete;
  StateExchange& operator=(const StateExchange&) = delete;

  /// True if this rank has the target.
  [[nodiscard]] bool has_state() const;
  /// True if this rank sends the target to another.
  [[nodiscard]] bool gives() const;
  void give(std::vector<std::byte> bytes);
  void take();
  /// The received bytes, after poll() of take() has returned done.
  [[nodiscard]] std::span<const std::byte> taken() const;
  void confirm();

  Progress poll(TimePoint now);
  /// Errors: the transport's; protocol (not a state, too long, damaged; names the rank); timed_out.
  [[nodiscard]] const Error& error() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rivulet::sync
