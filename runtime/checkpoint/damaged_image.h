#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

/// What is known of an image (runtime/state/state_image.h) that was not decoded. Pure.
namespace rivulet::runtime {

/// Nothing in it has changed since it was written, of whatever version, model and job it is. One pass.
bool is_whole(std::span<const std::byte> image);

/// The row clock in an image that is damaged elsewhere.
std::optional<std::uint64_t> rows_in_damaged(std::span<const std::byte> image);

/// The job whose state it is; `beginning`: at least job_bytes_max of it, or all. Nothing if that is not
/// legible.
std::optional<std::string> job_in(std::span<const std::byte> beginning);
inline constexpr std::size_t job_bytes_max = 4096;

}  // namespace rivulet::runtime
