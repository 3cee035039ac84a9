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

/// The first thing in a view: ranks that lack the view's target get its bytes from those that hold it, then
/// everybody waits until everybody is settled. Opaque bytes, checked on arrival: 64-byte header, one checksum
/// per MiB, the bytes. The i-th rank that lacks it gets it from holder i modulo their number.
///
///   holder:  give(bytes)          -> settle() -> poll() ... done
///   other:   take() -> poll() ... -> taken()  -> settle() -> poll() ... done
///
/// A donor's death fails the view like any other; the next view has other donors, or another target. The
/// whole takes at most `patience`: others wait for a slow transfer, not for a silent peer. Owner: the train
/// thread. poll() never waits. Lives inside a View, longer than its transport's operations.
class StateExchange {
 public:
  /// `bytes_max`: longer ones are refused before anything is allocated.
  StateExchange(Transport& transport, const ViewSpec& view, std::size_t bytes_max, TimePoint give_up_at);
  ~StateExchange();
  StateExchange(const StateExchange&) = delete;
  StateExchange& operator=(const StateExchange&) = delete;

  /// This rank holds the target.
  [[nodiscard]] bool holds() const;
  /// ... and somebody gets it from here.
  [[nodiscard]] bool gives() const;
  void give(std::vector<std::byte> bytes);
  void take();
  /// What arrived; after take() was polled to done.
  [[nodiscard]] std::span<const std::byte> taken() const;
  void settle();

  Progress poll(TimePoint now);
  /// Errors: the transport's; protocol (not a state, too long, damaged: names the rank); timed_out.
  [[nodiscard]] const Error& error() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rivulet::sync
