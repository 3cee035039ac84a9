#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace rivulet::devices {

/// Bytes that all entries of a zip file are together when they are unpacked, as its directory says: by it its
/// readers allocate. nullopt: no zip file, or one whose directory is not whole. Pure, for files from
/// anywhere.
std::optional<std::uint64_t> unpacked_bytes(std::string_view zip);

}  // namespace rivulet::devices
