#pragma once
#include "sync/coding/sparse_slot.h"
#include "sync/compressor/compressor.h"

/// Compressors that send a subset of the elements (sync/coding/sparse_slot.h). Each selects in its own
/// way.
namespace rivulet::sync {

template <class Of>
void encode_by(const Coding& coding, const GradientView& numbers, std::span<std::byte> slot) {
  if (numbers.scalar == Scalar::f32)
    encode_sparse<float>(coding, numbers.as<float>(), &Of::template select<float>, slot);
  else
    encode_sparse<double>(coding, numbers.as<double>(), &Of::template select<double>, slot);
}
/// Returns the entry of a compressor that selects elements by Of::select<T>, a Select<T>.
template <class Of>
constexpr CompressorEntry sparse_compressor(std::string_view name, std::uint16_t wire_id,
                                            std::string_view help, std::span<const Key> keys,
                                            bool usual = false) {
  return {.name = name,
          .wire_id = wire_id,
          .help = help,
          .keeps_residual = true,
          .slot_bytes = &sparse_slot_bytes,
          .encode = &encode_by<Of>,
          .decode_add = &decode_add_sparse,
          .keys = keys,
          .usual = usual,
          .value_bytes = &sparse_value_bytes};
}

}  // namespace rivulet::sync
