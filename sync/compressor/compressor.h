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

/// What a slot holds.
enum class SlotKind : std::uint8_t {
  whole,    ///< all numbers as they are
  entries,  ///< some of them
  mixture,  ///< a little of all
};

/// Parameters to the bytes of a slot, whose size all devices know before, and back. Stateless: functions of
/// their arguments; any thread. To add one, add a file sync/compressor/<name>.cpp that defines
/// `const CompressorEntry compressor_<name>`; its keys are configuration keys.
struct CompressorEntry {
  std::string_view name;
  std::uint16_t wire_id;  ///< in the payload header; unique, never reused
  std::string_view help;
  /// What a slot leaves out is kept and sent later (sync/residual/residual.h); else it is forgotten.
  bool keeps_residual = false;
  /// What a slot leaves out it leaves out number by number: so a device may keep the momentum of these, and
  /// there are slots of parts of the parameters. Else it says a little of all.
  bool entries = true;
  /// Of the slot that holds this share of the parameters. `settings`: of its own keys. 1 <= bytes <= 2 GB.
  std::uint64_t (*slot_bytes)(const ContributionShape& shape, double keep_ratio, const Settings& settings);
  /// Fills all of `slot` with as much of `numbers` [P], in host memory, as fits.
  void (*encode)(const Coding& coding, const GradientView& numbers, std::span<std::byte> slot);
  /// sum [P] += weight * what is in the slot, which a peer wrote: every length and index is checked. Errors:
  /// protocol; the sum is garbage then.
  Status (*decode_add)(const Coding& coding, std::span<const std::byte> slot, double weight,
                       const GradientView& sum);
  std::span<const Key> keys = {};
  /// Controllers that choose how much to send send slots of this kind by it.
  bool usual = false;
  /// Bytes of a slot of its own that hold numbers; the others say where they belong, or stay empty. Not set:
  /// all of them.
  std::uint64_t (*value_bytes)(const Coding& coding, std::span<const std::byte> slot) = nullptr;

  [[nodiscard]] constexpr SlotKind kind() const {
    if (!keeps_residual) return SlotKind::whole;
    return entries ? SlotKind::entries : SlotKind::mixture;
  }
};
std::span<const CompressorEntry* const> builtin_compressors() noexcept;

}  // namespace rivulet::sync
