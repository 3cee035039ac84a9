#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "core/result.h"
#include "core/row.h"

namespace rivulet::sync {

/// Rows of one shape: features [rows, columns], targets [rows, targets].
struct RowBlock {
  std::vector<float> features;
  std::vector<float> targets;
  std::size_t rows = 0;
};

/// Encoding of rows, the same on both sides.
struct RowFormat {
  RowShape shape;
  /// Up to 256 values that cover all features, if known in advance, as for pixels. Otherwise the
  /// values that occur in the rows are sent.
  std::vector<float> usual;
  bool may_miss = false;  ///< a feature may be NaN, which means missing
};

/// Losslessly encodes as many leading rows of a batch as fit into `bytes_max`: deflated, with an index per
/// feature if few values occur. Returns an empty vector if no row fits. Cost: milliseconds for 100 kB.
std::vector<std::byte> encode_rows(const BatchView& rows, const RowFormat& format, std::size_t bytes_max);
/// Decodes untrusted bytes of encode_rows(). Errors: protocol (names the reason).
Result<RowBlock> decode_rows(std::span<const std::byte> bytes, const RowFormat& format, std::size_t rows_max);

}  // namespace rivulet::sync
