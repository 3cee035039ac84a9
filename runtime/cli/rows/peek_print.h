#pragma once
#include <span>
#include <string>
#include <string_view>

#include "core/record.h"
#include "core/row.h"

namespace rivulet::runtime::cli {

/// One decoded row as peek sees it; the spans live as long as the caller's buffers.
struct PeekedRow {
  std::string_view topic;
  RowPosition position;
  std::int64_t timestamp_ms = 0;
  std::span<const float> features;
  std::span<const float> targets;
  std::string_view label = {};              ///< as the record has it; empty: as the target
  std::span<const std::string> names = {};  ///< of the first features; empty: they have none
};

/// Position, label, targets, shape, least, greatest and mean value, the first values with their names; a
/// picture if the shape is one.
std::string describe_row(const PeekedRow& row, const RowShape& shape, bool picture);
/// The same as one JSON object, all features included.
std::string row_to_json(const PeekedRow& row, const RowShape& shape);
/// Why a row was dropped.
std::string describe_drop(std::string_view topic, const RowPosition& position, DropReason reason,
                          std::string_view detail);
std::string drop_to_json(std::string_view topic, const RowPosition& position, DropReason reason,
                         std::string_view detail);

/// Dark to light as letters, two lines of the image in one: [height, width] values, row-major. Lines end with
/// '\n'.
std::string ascii_image(std::span<const float> values, std::size_t height, std::size_t width);

}  // namespace rivulet::runtime::cli
