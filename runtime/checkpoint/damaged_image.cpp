#include "runtime/checkpoint/damaged_image.h"

#include <cstring>
#include <string_view>

#include "core/digest.h"
#include "core/sha256.h"
#include "runtime/state/state_image.h"

// The table of bytes is in image_format.h. Here only the first section is looked at, with nothing of the
// head.
namespace rivulet::runtime {
namespace {

constexpr std::size_t size_at = state_head_bytes + 8;  // behind the tag and a zero
constexpr std::size_t checksum_at = size_at + sizeof(std::uint64_t);
constexpr std::size_t body_at = checksum_at + sizeof(std::uint64_t);
constexpr std::size_t rows_in_body = sizeof(std::uint32_t) + 2 * sizeof(std::uint64_t);

std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

bool is_whole(std::span<const std::byte> image) {
  if (image.size() < state_head_bytes + sizeof(Sha256)) return false;
  return sha256_of(image.first(image.size() - sizeof(Sha256))) == hash_in(image);
}

std::optional<std::uint64_t> rows_in_damaged(std::span<const std::byte> image) {
  if (image.size() < body_at) return std::nullopt;
  const std::string_view tag(reinterpret_cast<const char*>(image.data()) + state_head_bytes, 4);
  const std::uint64_t size = number_at(image, size_at);
  if (tag != "MODL" || size > image.size() - body_at || size < rows_in_body + sizeof(std::uint64_t))
    return std::nullopt;
  const auto body = image.subspan(body_at, size);
  if (rivulet::digest_of(body).low != number_at(image, checksum_at)) return std::nullopt;
  return number_at(body, rows_in_body);
}

}  // namespace rivulet::runtime
