#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/gradient_view.h"
#include "core/result.h"

namespace rivulet::sync {

/// A weighted contribution to bytes and back. Stateful where it keeps a residual; then encode() writes only a
/// candidate, which commit() makes real and drop() forgets. Owner: the train thread; one per device
/// (CompressorCache).
class Compressor {
 public:
  virtual ~Compressor() = default;
  /// Which memory it can read. dense: host.
  [[nodiscard]] virtual bool accepts(MemoryKind kind) const noexcept = 0;
  /// Most bytes encode() can produce for `count` numbers.
  [[nodiscard]] virtual std::size_t bytes_max(std::size_t count, Scalar scalar) const noexcept = 0;
  /// Every payload of `count` numbers has bytes_max(), so that who receives it knows its length.
  [[nodiscard]] virtual bool has_fixed_size() const noexcept { return false; }
  /// Encodes `weight * in`. Returns how many bytes of `out` it used; that may depend on the data.
  virtual Result<std::size_t> encode(const GradientView& in, double weight, double keep_ratio,
                                     std::span<std::byte> out) = 0;
  /// sum += what the bytes say. Checks every length and index. Errors: protocol.
  virtual Status decode_add(std::span<const std::byte> bytes, const GradientView& sum) = 0;
  /// A contribution can be encoded with weight 1 while its weight is not known, and weighted by who receives
  /// it: the same bits as if encode() had been told.
  [[nodiscard]] virtual bool receiver_weighted() const noexcept { return false; }
  /// Only if receiver_weighted(): sum += weight * what the bytes say.
  virtual Status decode_add_weighted(std::span<const std::byte> bytes, double weight,
                                     const GradientView& sum) {
    static_cast<void>(bytes), static_cast<void>(weight), static_cast<void>(sum);
    return Error{ErrorCode::protocol, "this compressor weighs before it encodes"};
  }
  virtual void commit() noexcept = 0;  ///< the agreed sum was applied
  virtual void drop() noexcept = 0;    ///< it was not, whatever the reason: state as before encode()
};

/// To add one, add a file sync/compressor/<name>.cpp that defines `const CompressorEntry compressor_<name>`.
struct CompressorEntry {
  std::string_view name;
  std::uint16_t wire_id;  ///< in the payload header; unique, never reused
  std::unique_ptr<Compressor> (*make)();
};
std::span<const CompressorEntry* const> builtin_compressors() noexcept;

}  // namespace rivulet::sync
