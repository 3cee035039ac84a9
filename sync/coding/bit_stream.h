#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/check.h"

/// Bits of a payload: the lowest bit of a byte first, so that a word is read as it lies in memory.
namespace rivulet::sync {

static_assert(std::endian::native == std::endian::little, "words are stored as they lie");

/// Writes bits one behind the other over bytes that are cleared first. Owner: whoever encodes.
class BitWriter {
 public:
  explicit BitWriter(std::span<std::byte> out) : out_(out) { std::memset(out.data(), 0, out.size()); }
  /// The lowest `count` bits of `value`, at most 32; all others of it are 0.
  void put(std::uint32_t value, unsigned count) {
    RIVULET_CHECK(at_ + count <= out_.size() * 8, "bits beyond the end of a slot");
    std::uint64_t bits = std::uint64_t{value} << (at_ % 8);
    for (std::size_t byte = at_ / 8; bits != 0; ++byte, bits >>= 8U)
      out_[byte] |= static_cast<std::byte>(bits & 0xffU);
    at_ += count;
  }
  /// So many zeros.
  void skip(std::size_t count) {
    RIVULET_CHECK(at_ + count <= out_.size() * 8, "bits beyond the end of a slot");
    at_ += count;
  }
  void align() { at_ = (at_ + 7) / 8 * 8; }
  [[nodiscard]] std::size_t bits() const noexcept { return at_; }

 private:
  std::span<std::byte> out_;
  std::size_t at_ = 0;
};

/// Reads them again, from bytes that anybody may have written: beyond the end fine() is false, and all is 0.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint32_t get(unsigned count) {
    const std::uint64_t word = peek();
    at_ += count;
    fine_ = fine_ && at_ <= bytes_.size() * 8;
    return fine_ ? static_cast<std::uint32_t>(word & ((std::uint64_t{1} << count) - 1)) : 0;
  }
  /// Zeros up to the next one, which is taken, too; more than `most` are no number.
  std::uint32_t unary(std::uint32_t most) {
    std::uint32_t zeros = 0;
    while (fine_) {
      const std::uint64_t word = peek();
      const auto usable = static_cast<std::uint32_t>(64 - at_ % 8);
      const auto here = std::min(static_cast<std::uint32_t>(std::countr_zero(word)), usable);
      zeros += here;
      const bool found = here < usable && word != 0;
      at_ += here + (found ? 1 : 0);
      fine_ = at_ <= bytes_.size() * 8 && zeros <= most;
      if (found) break;
    }
    return fine_ ? zeros : 0;
  }
  void align() { at_ = (at_ + 7) / 8 * 8; }
  [[nodiscard]] bool fine() const noexcept { return fine_; }
  [[nodiscard]] std::size_t bits() const noexcept { return at_; }

 private:
  /// From where it stands, at least 57 bits; zeros behind the end.
  [[nodiscard]] std::uint64_t peek() const {
    std::uint64_t word = 0;
    const std::size_t byte = at_ / 8;
    if (byte < bytes_.size())
      std::memcpy(&word, bytes_.data() + byte, std::min(sizeof word, bytes_.size() - byte));
    return word >> (at_ % 8);
  }
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool fine_ = true;
};

}  // namespace rivulet::sync
