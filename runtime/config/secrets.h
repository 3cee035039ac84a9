#pragma once
#include <string>
#include <vector>

namespace rivulet::runtime {

/// `text` with "***" where one of `secrets` stands in it, or where the beginning of one stands at its end,
/// for others cut long messages. Secrets under four characters stay: they are in every text. Pure.
std::string masked(std::string text, std::vector<std::string> secrets);

}  // namespace rivulet::runtime
