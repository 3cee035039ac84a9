#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "core/result.h"
#include "core/row.h"

namespace rivulet::sync {

/// Rows of one shape: features [rows, columns], targets [rows, targets].
struct CopiedRows {
  std::vector<float> features;
  std::vector<float> targets;
  std::size_t rows = 0;
};

/// How rows are written. The same on both sides.
struct RowFormat {
  RowShape shape;
  /// At most 256 numbers that all features are among, where that is known, as of pixels: else those that
  /// occur are sent.
  std::vector<float> usual;
  bool may_miss = false;  ///< a feature may be NaN: it is missing
};

/// As many of the first rows as fit into N bytes, to the last bit: where few numbers occur, by their
/// index, and deflated. Of `rows` as they lie in a batch. Empty: none fits. Cost: milliseconds for 100 kB.
std::vector<std::byte> encode_rows(const BatchView& rows, const RowFormat& format, std::size_t bytes_max);
/// What encode_rows() has made, for bytes that anybody may have sent. Errors: protocol (says what).
Result<CopiedRows> decode_rows(std::span<const std::byte> bytes, const RowFormat& format,
                               std::size_t rows_max);

}  // namespace rivulet::sync
