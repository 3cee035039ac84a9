#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "core/fields.h"

namespace rivulet {

/// 128-bit fingerprint of bytes (XXH3-128): fast, and safe against accidents but not against attackers.
struct Digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const Digest&) const = default;
  [[nodiscard]] std::string hex() const;  ///< 32 characters
};
constexpr void fields(Either<Digest> auto& d, auto&& visit) {
  visit("low", d.low);
  visit("high", d.high);
}

/// Hashes arrays and values into one digest, equal to that of their concatenated bytes. Cost: about 0.1 ms
/// per MB. Small values are buffered, because calling the hash function costs more than hashing them.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  void add(std::span<const std::byte> bytes) noexcept;
  /// Requires a type without padding: padding bytes are undefined.
  template <class T>
  void add_value(const T& v) noexcept {
    static_assert(sizeof v <= joined_max);
    if (joined_ + sizeof v > joined_max) join();
    std::memcpy(values_.data() + joined_, &v, sizeof v);
    joined_ += sizeof v;
  }
  [[nodiscard]] Digest finish() noexcept;

 private:
  static constexpr std::size_t joined_max = 1024;
  void join() noexcept;
  std::array<std::byte, joined_max> values_;
  std::size_t joined_ = 0;
  struct State;
  std::unique_ptr<State> state_;
};

Digest digest_of(std::span<const std::byte> bytes) noexcept;

}  // namespace rivulet
