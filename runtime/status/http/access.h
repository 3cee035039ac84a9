#pragma once
#include <string>
#include <string_view>

#include "core/result.h"

namespace rivulet::runtime {

/// Who may read the pages: everybody who reaches the port, or who knows a token. A token is sent as
/// `Authorization: Bearer TOKEN` (programs) or as the password of `Authorization: Basic` (browsers, whatever
/// the user name). How long a wrong one takes to be refused does not depend on how much of it is right.
/// Immutable; any thread.
class Access {
 public:
  static constexpr std::size_t token_least = 16;
  static constexpr std::size_t token_most = 256;

  /// Everybody.
  Access() = default;
  /// `path`: a file whose first line is the token; the rest must be empty. Errors: invalid_config (names
  /// http.token_file, the file and what is wrong; never a part of what is in it).
  static Result<Access> from_file(const std::string& path);

  [[nodiscard]] bool needs_token() const noexcept { return !token_.empty(); }
  /// `header`: the value of Authorization; empty if there is none.
  [[nodiscard]] bool allows(std::string_view header) const;
  /// What a client of the same file sends; empty if no token is needed.
  [[nodiscard]] std::string header() const { return needs_token() ? "Bearer " + token_ : ""; }

 private:
  explicit Access(std::string_view token) : token_(token) {}
  std::string token_;
};

}  // namespace rivulet::runtime
