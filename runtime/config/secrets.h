#pragma once
#include <string>
#include <vector>

#include "runtime/config/config.h"

namespace rivulet::runtime {

/// Replaces each of `secrets` in `text` by Secret::shown, verbatim or escaped. Also replaces a prefix of a
/// secret at the end, because libraries truncate long messages. Ignores secrets under four characters, which
/// occur in any text. Pure.
std::string masked(std::string text, std::vector<Secret> secrets);

}  // namespace rivulet::runtime
