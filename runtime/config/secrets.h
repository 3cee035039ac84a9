#pragma once
#include <string>
#include <vector>

#include "runtime/config/config.h"

namespace rivulet::runtime {

/// `text` with Secret::shown where one of `secrets` stands in it, as it is or escaped, or where the beginning
/// of one stands at its end, for others cut long messages. Secrets under four characters stay: they are in
/// every text. Pure.
std::string masked(std::string text, std::vector<Secret> secrets);

}  // namespace rivulet::runtime
