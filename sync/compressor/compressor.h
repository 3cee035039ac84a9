#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/gradient_view.h"
#include "core/result.h"
#include "core/settings.h"
#include "sync/coding/coding.h"

namespace rivulet::sync {

/// Content of a slot.
enum class SlotKind : std::uint8_t {
  whole,    ///< all elements, unchanged
  entries,  ///< some elements
  mixture,  ///< a low-rank approximation of all elements
};

/// Encodes parameters into a slot, whose size all devices know in advance, and decodes it. Stateless pure
/// functions; any thread. To add one, add a file sync/compressor/<name>.cpp that defines `const
/// CompressorEntry compressor_<name>`; its keys are configuration keys.
struct CompressorEntry {
  std::string_view name;
  std::uint16_t wire_id;  ///< in the payload header; unique, never reused
  std::string_view help;
  /// Whether the residual keeps the part that a slot omits (sync/residual/residual.h), to be sent later.
  /// Otherwise that part is dropped.
  bool keeps_residual = false;
  /// Whether a slot omits individual elements. A device can then keep their momentum, and a slot can cover a
  /// part of the parameters. Otherwise a slot approximates all elements.
  bool entries = true;
  /// Size of a slot for this share of the parameters. `settings`: values of its keys. 1 <= bytes <= 2 GB.
  std::uint64_t (*slot_bytes)(const ContributionShape& shape, double keep_ratio, const Settings& settings);
  /// Fills `slot` with as much of `numbers` [P], in host memory, as fits.
  void (*encode)(const Coding& coding, const GradientView& numbers, std::span<std::byte> slot);
  /// sum [P] += weight * the slot, which is untrusted: checks every length and index. Errors: protocol; the
  /// sum is then undefined.
  Status (*decode_add)(const Coding& coding, std::span<const std::byte> slot, double weight,
                       const GradientView& sum);
  std::span<const Key> keys = {};
  /// Whether this is the default compressor of its kind() for controllers that choose the keep ratio.
  bool usual = false;
  /// Bytes of a slot that hold values; the others hold positions or padding. Null: all hold values.
  std::uint64_t (*value_bytes)(const Coding& coding, std::span<const std::byte> slot) = nullptr;

  [[nodiscard]] constexpr SlotKind kind() const {
    if (!keeps_residual) return SlotKind::whole;
    return entries ? SlotKind::entries : SlotKind::mixture;
  }
};
std::span<const CompressorEntry* const> builtin_compressors() noexcept;

}  // namespace rivulet::sync
