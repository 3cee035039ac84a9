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
  /// The residual keeps what a slot leaves out (sync/residual/residual.h) and sends it later; else it is
  /// dropped.
  bool keeps_residual = false;
  /// A slot leaves out whole elements. So a device can keep their momentum, and slots of parts of the
  /// parameters are possible. False: a slot approximates all elements.
  bool entries = true;
  /// Size of a slot that holds this share of the parameters. `settings`: of its own keys. 1 <= bytes <= 2 GB.
  std::uint64_t (*slot_bytes)(const ContributionShape& shape, double keep_ratio, const Settings& settings);
  /// Fills `slot` with as much of `numbers` [P], in host memory, as fits.
  void (*encode)(const Coding& coding, const GradientView& numbers, std::span<std::byte> slot);
  /// sum [P] += weight * the slot, which is untrusted: checks every length and index. Errors: protocol; the
  /// sum is then undefined.
  Status (*decode_add)(const Coding& coding, std::span<const std::byte> slot, double weight,
                       const GradientView& sum);
  std::span<const Key> keys = {};
  /// Controllers that choose the keep ratio use this compressor for slots of this kind.
  bool usual = false;
  /// Bytes of a slot that hold values; the others hold positions or padding. Null: all of them.
  std::uint64_t (*value_bytes)(const Coding& coding, std::span<const std::byte> slot) = nullptr;

  [[nodiscard]] constexpr SlotKind kind() const {
    if (!keeps_residual) return SlotKind::whole;
    return entries ? SlotKind::entries : SlotKind::mixture;
  }
};
std::span<const CompressorEntry* const> builtin_compressors() noexcept;

}  // namespace rivulet::sync
