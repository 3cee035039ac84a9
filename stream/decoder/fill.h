#pragma once
#include <optional>
#include <string_view>

#include "stream/decoder.h"

namespace rivulet::stream {

/// Parses "mean", "last", "drop" or a finite number. Returns nullopt for anything else.
std::optional<Fill> parse_fill(std::string_view text) noexcept;

/// Checks for configuration keys. Formats without a normalizer have no mean.
bool is_fill(std::string_view text);
bool is_fill_without_mean(std::string_view text);
inline constexpr std::string_view fill_form = "'mean', 'last', 'drop' or a number";
inline constexpr std::string_view fill_form_without_mean = "'last', 'drop' or a number";

}  // namespace rivulet::stream
