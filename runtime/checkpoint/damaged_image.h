#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

/// What is known of an image (runtime/state/state_image.h) that cannot be used. Pure.
namespace rivulet::runtime {

/// Nothing in it has changed since it was written, of whatever version, model and job it is. One pass.
bool is_whole(std::span<const std::byte> image);

/// The row clock in an image that is damaged elsewhere.
std::optional<std::uint64_t> rows_in_damaged(std::span<const std::byte> image);

}  // namespace rivulet::runtime
