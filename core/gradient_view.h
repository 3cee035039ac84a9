#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/check.h"

namespace rivulet {

enum class Scalar : std::uint8_t { f32, f64 };
enum class MemoryKind : std::uint8_t { host, pinned, device };

constexpr std::size_t bytes_of(Scalar s) {
  return s == Scalar::f32 ? 4 : 8;
}

/// A flat, non-owning array: `count` elements of one type in one kind of memory on one device. A contribution
/// has shape [parameters + buffers]: the gradient, followed by model buffers such as batch norm's.
struct GradientView {
  std::byte* data = nullptr;
  std::size_t count = 0;
  Scalar scalar = Scalar::f32;
  MemoryKind memory = MemoryKind::host;
  std::int16_t device = -1;  ///< index of the device; -1 = the host

  [[nodiscard]] std::size_t bytes() const noexcept { return count * bytes_of(scalar); }
  [[nodiscard]] bool host_readable() const noexcept { return memory != MemoryKind::device; }

  /// The elements. Requires memory that the host can read and elements of type T; anything else is a bug.
  template <class T>
  [[nodiscard]] std::span<T> as() const {
    RIVULET_CHECK(host_readable(), "device memory read by the host");
    RIVULET_CHECK(bytes_of(scalar) == sizeof(T), "wrong number type");
    return {reinterpret_cast<T*>(data), count};
  }
  [[nodiscard]] std::span<std::byte> host_bytes() const {
    RIVULET_CHECK(host_readable(), "device memory read by the host");
    return {data, bytes()};
  }
  /// Elements [begin, begin + n) of this view.
  [[nodiscard]] GradientView slice(std::size_t begin, std::size_t n) const {
    RIVULET_CHECK(begin + n <= count, "slice out of range");
    GradientView v = *this;
    v.data += begin * bytes_of(scalar);
    v.count = n;
    return v;
  }
};

}  // namespace rivulet
