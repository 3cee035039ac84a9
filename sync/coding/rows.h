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
  /// Up to 256 values that cover all features, if known in advance, as for pixels. Else the values that
  /// occur are sent.
  std::vector<float> usual;
  bool may_miss = false;  ///< a feature may be NaN, which means missing
};

/// Encodes leading rows of a batch, as many as fit into `bytes_max`, lossless: deflated, with an index per
/// feature if few values occur. Empty: none fits. Cost: milliseconds for 100 kB.
std::vector<std::byte> encode_rows(const BatchView& rows, const RowFormat& format, std::size_t bytes_max);
/// Decodes untrusted bytes of encode_rows(). Errors: protocol (names the reason).
Result<RowBlock> decode_rows(std::span<const std::byte> bytes, const RowFormat& format, std::size_t rows_max);

}  // namespace rivulet::sync
