#pragma once
#include <functional>
#include <optional>
#include <string>

#include "core/result.h"

namespace rivulet::runtime {

struct Interpolated {
  std::string text;
  bool changed = false;  ///< contained a ${...}
  bool secret = false;   ///< partly read from a file
};

/// Replaces ${VAR}, ${VAR:-default} and ${file:/path} (one trailing newline removed, maximum 1 MiB) inside a
/// string; $${ is a literal ${. An unset or empty VAR takes the default. Errors: invalid_config (unset
/// variable, missing file, missing closing brace).
Result<Interpolated> interpolate(
    const std::string& text, const std::function<std::optional<std::string>(const std::string&)>& variable);

}  // namespace rivulet::runtime
