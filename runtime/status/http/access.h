#pragma once
#include <string>
#include <string_view>

#include "core/result.h"

namespace rivulet::runtime {

/// Access control of the pages: open to every client that reaches the port, or only to clients with a token.
/// A token is sent as `Authorization: Bearer TOKEN` (programs) or as the password of `Authorization: Basic`
/// (browsers, any user name). Comparison takes constant time. Immutable; any thread.
class Access {
 public:
  static constexpr std::size_t token_least = 16;
  static constexpr std::size_t token_most = 256;

  /// No token needed.
  Access() = default;
  /// `path`: a file whose first line is the token; the rest must be empty. Errors: invalid_config (names
  /// http.token_file, the file and the reason; never any part of its content).
  static Result<Access> from_file(const std::string& path);

  [[nodiscard]] bool needs_token() const noexcept { return !token_.empty(); }
  /// True if the request may read the pages. `header`: the value of Authorization; empty if absent.
  [[nodiscard]] bool allows(std::string_view header) const;
  /// Returns the header value for a client that has the same token file; empty if no token is needed.
  [[nodiscard]] std::string header() const { return needs_token() ? "Bearer " + token_ : ""; }

 private:
  explicit Access(std::string_view token) : token_(token) {}
  std::string token_;
};

}  // namespace rivulet::runtime
