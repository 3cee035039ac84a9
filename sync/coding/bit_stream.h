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

/// Writes bits one behind the other over bytes that are cleared first. Owner: the encoder.
class BitWriter {
 public:
  explicit BitWriter(std::span<std::byte> out) : out_(out) { std::memset(out.data(), 0, out.size()); }
  /// The lowest `count` bits of `value`, at most 32; all others of it are 0.
  void put(std::uint32_t value, unsigned count) { put_long(value, count); }
  /// ... at most 57.
  void put_long(std::uint64_t value, unsigned count) {
    RIVULET_CHECK(at_ + count <= out_.size() * 8, "bits beyond the end of a slot");
    const std::size_t byte = at_ / 8;
    const std::uint64_t word = begun_ | (value << (at_ % 8));
    // Behind what was written all is 0: it may be written again, and nothing has to be read.
    std::memcpy(out_.data() + byte, &word, std::min(sizeof word, out_.size() - byte));
    at_ += count;
    const std::size_t whole = at_ / 8 - byte;
    begun_ = whole < sizeof word ? word >> (8 * whole) : 0;
  }
  /// N zeros.
  void skip(std::size_t count) {
    RIVULET_CHECK(at_ + count <= out_.size() * 8, "bits beyond the end of a slot");
    const bool same_byte = (at_ + count) / 8 == at_ / 8;
    at_ += count;
    if (!same_byte) begun_ = 0;
  }
  void align() { skip((8 - at_ % 8) % 8); }
  /// N whole bytes, which the caller fills; it stands at the beginning of one.
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
  std::uint64_t begun_ = 0;  ///< the bits of the byte that it stands in
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
  /// N whole bytes; it stands at the beginning of one. None if there are fewer.
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
