#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace rivulet {

/// Fingerprint of bytes that is also safe against attackers. Cost: about 1 ms per MB.
using Sha256 = std::array<std::byte, 32>;

Sha256 sha256_of(std::span<const std::byte> bytes);
std::string hex_of(const Sha256& hash);  ///< 64 characters

}  // namespace rivulet
