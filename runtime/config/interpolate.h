#pragma once
#include <functional>
#include <optional>
#include <string>

#include "core/result.h"

namespace rivulet::runtime {

struct Interpolated {
  std::string text;
  bool changed = false;  ///< there was a ${...}
  bool secret = false;   ///< part of it came from a file
};

/// ${VAR}, ${VAR:-default} and ${file:/path} (one trailing newline removed, at most 1 MiB) inside a string;
/// $${ is a plain ${. An unset or empty VAR takes the default. Errors: invalid_config (not set, no such file,
/// not closed).
Result<Interpolated> interpolate(
    const std::string& text, const std::function<std::optional<std::string>(const std::string&)>& variable);

}  // namespace rivulet::runtime
