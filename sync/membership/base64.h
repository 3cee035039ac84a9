#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// RFC 4648 base64 with padding. Private to membership/.
namespace rivulet::sync::membership {

std::string to_base64(std::span<const std::byte> bytes);
/// Returns nothing unless the text is canonical, padded base64.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace rivulet::sync::membership
