#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/check.h"

namespace rivulet {

enum class ErrorCode : std::uint8_t {
  invalid_config,  ///< rejected before start; the message lists every problem
  usage,           ///< wrong command line
  bad_record,      ///< one record or payload cannot be decoded; it is dropped and counted
  unavailable,     ///< a dependency is missing or unreachable (broker, topic, library, port)
  source_lost,     ///< broker or file lost while running; retry with back-off
  peer_lost,       ///< a peer died or left; this view is over
  timed_out,       ///< progress deadline passed; this view is over
  protocol,        ///< a peer violated the protocol; this view is over
  diverged,        ///< state digests differ; the message names the minority if there is one
  superseded,      ///< a newer session of the same device exists
  numeric,         ///< NaN or infinity
  io,              ///< a local file or socket failed
  cancelled,       ///< the caller requested a stop
};

/// Stable lower-case name of a code, for logs and labels.
std::string_view name_of(ErrorCode code) noexcept;

struct Error {
  ErrorCode code = ErrorCode::io;
  std::string message;                     ///< one sentence for the user: what, where, which value
  std::vector<std::uint32_t> blamed = {};  ///< ranks of the view that caused it; empty: none, or unknown
};

/// A value or an Error. Accessing the wrong one is a bug and aborts, in release builds too.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(*-explicit-*)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(*-explicit-*)

  explicit operator bool() const noexcept { return state_.index() == 0; }
  T& value() & {
    RIVULET_CHECK(state_.index() == 0, "value() called on an error");
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    RIVULET_CHECK(state_.index() == 0, "value() called on an error");
    return *std::get_if<0>(&state_);
  }
  /// Returns by value: a reference into a temporary would dangle in `for (auto& x : f().value())`.
  T value() && {
    RIVULET_CHECK(state_.index() == 0, "value() called on an error");
    return std::move(*std::get_if<0>(&state_));
  }
  [[nodiscard]] const Error& error() const {
    RIVULET_CHECK(state_.index() == 1, "error() called on a value");
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

using Status = Result<std::monostate>;
inline Status ok() {
  return Status(std::monostate{});
}

/// Result of polling a non-blocking operation.
enum class Progress : std::uint8_t { pending, done, failed };

}  // namespace rivulet
