#include "core/sha256.h"

#include <openssl/evp.h>

#include "core/check.h"

namespace rivulet {

Sha256 sha256_of(std::span<const std::byte> bytes) {
  Sha256 hash{};
  unsigned int size = 0;
  const int done = EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(hash.data()),
                              &size, EVP_sha256(), nullptr);
  RIVULET_CHECK(done == 1 && size == hash.size(), "libcrypto has no SHA-256");
  return hash;
}

std::string hex_of(const Sha256& hash) {
  constexpr auto* digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * hash.size());
  for (const std::byte b : hash) {
    text.push_back(digits[std::to_integer<unsigned>(b) >> 4U]);
    text.push_back(digits[std::to_integer<unsigned>(b) & 15U]);
  }
  return text;
}

}  // namespace rivulet
