#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/gradient_view.h"
#include "core/result.h"
#include "core/stamp.h"

namespace rivulet::runtime {

/// What a device keeps for itself beside a saved state, and what is worth nothing with another one.
struct PrivatePart {
  Stamp stamp;  ///< of the state
  Scalar scalar = Scalar::f32;
  std::vector<std::byte> residual;                 ///< [P] numbers; empty: it had none
  bool of_movements = false;                       ///< what the residual is left of; else of gradients
  std::uint64_t own_steps = 0;                     ///< made for the arrays below
  double own_norm = 0;                             ///< usual one of the gradients of own steps
  std::vector<std::vector<std::byte>> own_arrays;  ///< [P] each: what the optimizer remembers of own steps
  [[nodiscard]] bool empty() const noexcept { return residual.empty() && own_arrays.empty(); }
  bool operator==(const PrivatePart&) const = default;
};

/// The same, where it lies in the device.
struct PrivateView {
  std::span<const std::byte> residual;
  bool of_movements = false;
  std::uint64_t own_steps = 0;
  double own_norm = 0;
  std::vector<std::span<const std::byte>> own_arrays;
};

/// Little-endian, nothing between the fields: magic "RVLPRIVA" | version u32 | scalar u32 | lineage u64 |
/// step u64 | arrays u32, and of each: bytes of its name u32, name, bytes u64, bytes | SHA-256 of all before.
/// Arrays that are not known are skipped.
std::vector<std::byte> encode_private(const PrivatePart& part);
/// Most bytes of a file that belongs to a model of N parameters, whatever its optimizer remembers.
std::size_t private_part_max(std::size_t parameters, Scalar scalar);
/// Errors: bad_record (damaged, of another version, or of a model with other parameters).
Result<PrivatePart> decode_private(std::span<const std::byte> bytes, std::size_t parameters, Scalar scalar);

}  // namespace rivulet::runtime
