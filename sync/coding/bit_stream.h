#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/check.h"

/// Bit streams of payloads, lowest bit of a byte first, so that a word is read as stored in memory.
namespace rivulet::sync {

static_assert(std::endian::native == std::endian::little, "words are stored in host order");

/// Writes bits one after another into a buffer, which it zeroes first. Owner: the encoder.
class BitWriter {
 public:
  explicit BitWriter(std::span<std::byte> out) : out_(out) { std::memset(out.data(), 0, out.size()); }
  /// Writes the lowest `count` bits of `value`, up to 32. The other bits of `value` must be 0.
  void put(std::uint32_t value, unsigned count) { put_long(value, count); }
  /// As put(), but up to 57 bits.
  void put_long(std::uint64_t value, unsigned count) {
    RIVULET_CHECK(at_ + count <= out_.size() * 8, "bits beyond the end of a slot");
    const std::size_t byte = at_ / 8;
    const std::uint64_t word = begun_ | (value << (at_ % 8));
    // All later bits are 0 and may be overwritten, so nothing has to be read.
    std::memcpy(out_.data() + byte, &word, std::min(sizeof word, out_.size() - byte));
    at_ += count;
    const std::size_t whole = at_ / 8 - byte;
    begun_ = whole < sizeof word ? word >> (8 * whole) : 0;
  }
  /// Writes `count` zeros.
  void skip(std::size_t count) {
    RIVULET_CHECK(at_ + count <= out_.size() * 8, "bits beyond the end of a slot");
    const bool same_byte = (at_ + count) / 8 == at_ / 8;
    at_ += count;
    if (!same_byte) begun_ = 0;
  }
  void align() { skip((8 - at_ % 8) % 8); }
  /// Returns the next `bytes` bytes, which the caller fills. The position must be at a byte boundary.
  std::span<std::byte> take(std::size_t bytes) {
    RIVULET_CHECK(at_ % 8 == 0 && at_ / 8 + bytes <= out_.size(), "bytes beyond the end of a slot");
    const auto taken = out_.subspan(at_ / 8, bytes);
    at_ += 8 * bytes;
    return taken;
  }
  [[nodiscard]] std::size_t bits() const noexcept { return at_; }

 private:
  std::span<std::byte> out_;
  std::size_t at_ = 0;
  std::uint64_t begun_ = 0;  ///< written bits of the current byte
};

/// Reads bits from untrusted bytes. Past the end, fine() is false and reads return 0.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint32_t get(unsigned count) {
    const std::uint64_t word = peek();
    at_ += count;
    fine_ = fine_ && at_ <= bytes_.size() * 8;
    return fine_ ? static_cast<std::uint32_t>(word & ((std::uint64_t{1} << count) - 1)) : 0;
  }
  /// Reads zeros up to and including the next one bit. More than `most` is an error.
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
  /// Returns the next `bytes` bytes; empty if fewer are left. The position must be at a byte boundary.
  std::span<const std::byte> take(std::size_t bytes) {
    fine_ = fine_ && at_ % 8 == 0 && bytes <= bytes_.size() && at_ / 8 <= bytes_.size() - bytes;
    if (!fine_) return {};
    const auto taken = bytes_.subspan(at_ / 8, bytes);
    at_ += 8 * bytes;
    return taken;
  }
  [[nodiscard]] bool fine() const noexcept { return fine_; }
  [[nodiscard]] std::size_t bits() const noexcept { return at_; }

 private:
  /// Returns the next 57 or more bits; zeros past the end.
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
