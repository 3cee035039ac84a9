#pragma once
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "core/gradient_view.h"
#include "core/result.h"
#include "core/settings.h"

namespace rivulet::sync {

/// What a contribution looks like: parameters, tensor by tensor, and behind them buffers, which are averages
/// and travel as they are.
struct ContributionShape {
  Scalar scalar = Scalar::f32;
  std::vector<std::size_t> tensors;  ///< elements of each tensor of parameters, in their order
  std::size_t buffers = 0;
  /// Of each tensor its first dimension, behind which it is a matrix; 1 or nothing: it is none.
  std::vector<std::size_t> rows = {};
  [[nodiscard]] std::size_t parameters() const noexcept {
    return std::accumulate(tensors.begin(), tensors.end(), std::size_t{0});
  }
  [[nodiscard]] std::size_t count() const noexcept { return parameters() + buffers; }  ///< P + B
  [[nodiscard]] std::size_t bytes() const noexcept { return count() * bytes_of(scalar); }
  [[nodiscard]] std::size_t buffer_bytes() const noexcept { return buffers * bytes_of(scalar); }
};

/// What all devices know about the slots of a round, besides the bytes in them.
struct Coding {
  const ContributionShape* shape = nullptr;
  double keep_ratio = 1.0;
  std::uint64_t draw =
      0;  ///< for what is chosen by chance: another number in each round, the same everywhere
  const Settings* settings = nullptr;  ///< of the compressor's own keys
};

/// Parameters to the bytes of a slot, whose size all devices know before, and back. Stateless: functions of
/// their arguments; any thread. To add one, add a file sync/compressor/<name>.cpp that defines
/// `const CompressorEntry compressor_<name>`; its keys are configuration keys.
struct CompressorEntry {
  std::string_view name;
  std::uint16_t wire_id;  ///< in the payload header; unique, never reused
  std::string_view help;
  /// What a slot leaves out is kept and sent later (sync/round/residual.h); else it is forgotten.
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
  /// Bytes of a slot of its own that hold numbers; the others say where they belong, or stay empty. Not set:
  /// all of them.
  std::uint64_t (*value_bytes)(const Coding& coding, std::span<const std::byte> slot) = nullptr;
};
std::span<const CompressorEntry* const> builtin_compressors() noexcept;

}  // namespace rivulet::sync
