#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/gradient_view.h"
#include "core/result.h"
#include "core/stamp.h"

namespace rivulet::runtime {

/// Local data that a device saves next to a state. It is valid only for that state.
struct PrivatePart {
  Stamp stamp;  ///< stamp of the state that the part belongs to
  Scalar scalar = Scalar::f32;
  std::vector<std::byte> residual;                   ///< [P] elements; empty if there is no residual
  bool of_deltas = false;                            ///< the residual is of deltas, not of gradients
  std::uint64_t local_steps = 0;                     ///< local steps behind the arrays below
  double local_norm = 0;                             ///< typical gradient norm of local steps
  std::vector<std::vector<std::byte>> local_arrays;  ///< [P] each: optimizer arrays of local steps
  [[nodiscard]] bool empty() const noexcept { return residual.empty() && local_arrays.empty(); }
  bool operator==(const PrivatePart&) const = default;
};

/// Non-owning view of the same data in the device's memory.
struct PrivateView {
  std::span<const std::byte> residual;
  bool of_deltas = false;
  std::uint64_t local_steps = 0;
  double local_norm = 0;
  std::vector<std::span<const std::byte>> local_arrays;
};

/// Little-endian, no padding: magic "RVLPRIVA" | version u32 | scalar u32 | lineage u64 | step u64 | arrays
/// u32, then per array: name length u32, name, size u64, bytes | SHA-256 of everything before. Unknown arrays
/// are skipped.
std::vector<std::byte> encode_private(const PrivatePart& part);
/// Returns the maximum file size for a model with this number of parameters and any optimizer.
std::size_t private_part_max(std::size_t parameters, Scalar scalar);
/// Errors: bad_record (damaged, or written for a different version or model size).
Result<PrivatePart> decode_private(std::span<const std::byte> bytes, std::size_t parameters, Scalar scalar);

}  // namespace rivulet::runtime
