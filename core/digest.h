#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace rivulet {

/// 128-bit fingerprint of bytes (XXH3-128): fast and good against accidents, not against attackers.
struct Digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const Digest&) const = default;
  [[nodiscard]] std::string hex() const;  ///< 32 characters
};

/// Feeds several arrays into one digest. Cost: about 0.1 ms per MB.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  void add(std::span<const std::byte> bytes) noexcept;
  template <class T>
  void add_value(const T& v) noexcept {
    add(std::as_bytes(std::span<const T, 1>(&v, 1)));
  }
  [[nodiscard]] Digest finish() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest digest_of(std::span<const std::byte> bytes) noexcept;

}  // namespace rivulet
