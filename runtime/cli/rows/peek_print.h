#pragma once
#include <span>
#include <string>
#include <string_view>

#include "core/record.h"
#include "core/row.h"

namespace rivulet::runtime::cli {

/// One decoded row for peek. The spans refer to the caller's buffers.
struct PeekedRow {
  std::string_view topic;
  RowPosition position;
  std::int64_t timestamp_ms = 0;
  std::span<const float> features;
  std::span<const float> targets;
  std::string_view label = {};              ///< label as written in the record; empty if equal to the target
  std::span<const std::string> names = {};  ///< names of the first features; empty if unnamed
};

/// Renders position, label, targets, shape, minimum, maximum, mean and the first named values; for image
/// shapes also a picture.
std::string describe_row(const PeekedRow& row, const RowShape& shape, bool picture);
/// One JSON object with all features.
std::string row_to_json(const PeekedRow& row, const RowShape& shape);
/// Renders why a row was dropped.
std::string describe_drop(std::string_view topic, const RowPosition& position, DropReason reason,
                          std::string_view detail);
std::string drop_to_json(std::string_view topic, const RowPosition& position, DropReason reason,
                         std::string_view detail);

/// Renders [height, width] values, row-major, as characters from dark to light. Two image lines become one
/// text line; lines end with '\n'.
std::string ascii_image(std::span<const float> values, std::size_t height, std::size_t width);

}  // namespace rivulet::runtime::cli
