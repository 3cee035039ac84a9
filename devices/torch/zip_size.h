#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace rivulet::devices {

/// Returns the total unpacked bytes of all entries of a zip file, as listed in its directory, which readers
/// trust when they allocate. Returns nullopt if it is not a zip file, or its directory is incomplete. Pure,
/// for untrusted files.
std::optional<std::uint64_t> unpacked_bytes(std::string_view zip);

/// Whether the directory of a zip file has an entry whose name ends with `end_of_name`. False if it is not a
/// zip file. Pure.
bool has_entry(std::string_view zip, std::string_view end_of_name);

}  // namespace rivulet::devices
