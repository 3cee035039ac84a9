#include "runtime/checkpoint/damaged_image.h"

#include <cstring>
#include <string_view>

#include "core/digest.h"
#include "core/sha256.h"
#include "runtime/state/state_image.h"

// The layout is described in image_format.h. This file reads only the first two sections and no field of the
// head.
namespace rivulet::runtime {
namespace {

constexpr std::size_t size_at = 8;  // within a section: after the tag and a zero
constexpr std::size_t checksum_at = size_at + sizeof(std::uint64_t);
constexpr std::size_t body_at = checksum_at + sizeof(std::uint64_t);
constexpr std::size_t rows_in_body = sizeof(std::uint32_t) + 2 * sizeof(std::uint64_t);

std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// Returns the body of the section at the start of `bytes` if its checksum matches.
std::optional<std::span<const std::byte>> body_of(std::span<const std::byte> bytes, std::string_view tag) {
  if (bytes.size() < body_at) return std::nullopt;
  const std::uint64_t size = number_at(bytes, size_at);
  if (std::string_view(reinterpret_cast<const char*>(bytes.data()), 4) != tag ||
      size > bytes.size() - body_at)
    return std::nullopt;
  const auto body = bytes.subspan(body_at, size);
  if (rivulet::digest_of(body).low != number_at(bytes, checksum_at)) return std::nullopt;
  return body;
}

}  // namespace

bool is_whole(std::span<const std::byte> image) {
  if (image.size() < state_head_bytes + sizeof(Sha256)) return false;
  return sha256_of(image.first(image.size() - sizeof(Sha256))) == hash_in(image);
}

std::optional<std::uint64_t> rows_in_damaged(std::span<const std::byte> image) {
  if (image.size() < state_head_bytes) return std::nullopt;
  const auto body = body_of(image.subspan(state_head_bytes), "MODL");
  if (!body || body->size() < rows_in_body + sizeof(std::uint64_t)) return std::nullopt;
  return number_at(*body, rows_in_body);
}

std::optional<std::string> job_in(std::span<const std::byte> beginning) {
  if (beginning.size() < state_head_bytes) return std::nullopt;
  const auto sections = beginning.subspan(state_head_bytes);
  const auto model = body_of(sections, "MODL");
  if (!model) return std::nullopt;
  // `beginning` may end within the topics. The job precedes them, so the checksum is not verified.
  const auto owner = sections.subspan(body_at + model->size());
  if (owner.size() < body_at + sizeof(std::uint32_t) ||
      std::string_view(reinterpret_cast<const char*>(owner.data()), 4) != "OWNR")
    return std::nullopt;
  std::uint32_t length = 0;
  std::memcpy(&length, owner.data() + body_at, sizeof length);
  const auto name = owner.subspan(body_at + sizeof length);
  if (length > name.size()) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(name.data()), length);
}

}  // namespace rivulet::runtime
