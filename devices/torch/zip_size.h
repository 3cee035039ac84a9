#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace rivulet::devices {

/// Bytes that all entries of a zip file are together when they are unpacked, as its directory says: by it its
/// readers allocate. nullopt: not a zip file, or one whose directory is not whole. Pure, for files from
/// anywhere.
std::optional<std::uint64_t> unpacked_bytes(std::string_view zip);

/// Whether the directory of a zip file has an entry whose name ends so. False if it is not a zip file. Pure.
bool has_entry(std::string_view zip, std::string_view end_of_name);

}  // namespace rivulet::devices
