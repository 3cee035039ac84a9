#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

/// Reads parts of an image (runtime/state/state_image.h) without decoding it. Pure.
namespace rivulet::runtime {

/// True if the image is unchanged since it was written, regardless of version, model and job. Cost: one pass
/// over the image.
bool is_whole(std::span<const std::byte> image);

/// Returns the row clock of a damaged image; nullopt if that part is damaged, too.
std::optional<std::uint64_t> rows_in_damaged(std::span<const std::byte> image);

/// Returns the job that owns the state; nullopt if unreadable. `beginning`: the first job_bytes_max bytes or
/// more, or the whole image.
std::optional<std::string> job_in(std::span<const std::byte> beginning);
inline constexpr std::size_t job_bytes_max = 4096;

}  // namespace rivulet::runtime
