#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"

/// Functions for text, shared by commands.
namespace rivulet::runtime::cli {

/// 12345 -> "12 345".
std::string grouped(std::uint64_t n);
/// 1234567 -> "1.2 MB".
std::string human_bytes(double bytes);
/// 0.046 -> "4.6 %", 14.8 -> "1480 %": shares are always in percent.
std::string human_share(double share);
/// 0.046 -> "4.6 %"; "-" if unknown.
std::string share_or_dash(const std::optional<double>& share);
/// 35.2 -> "35 s", 0.0123 -> "12 ms", 150 -> "2 min 30 s".
std::string human_seconds(double seconds);

/// Returns the first `width` characters (not bytes) of UTF-8 text.
std::string clipped(const std::string& text, int width);

/// Option check that rejects empty text: an unset variable in a script must not select the default.
std::string not_empty(const std::string& text);
/// "800,400,200" -> non-negative numbers. Errors: usage (names the flag and the invalid item).
Result<std::vector<double>> parse_rates(const std::string& flag, const std::string& text);
/// "0:800,15:200" -> (second, rate) ascending; a plain number is a constant. Errors: usage.
Result<std::vector<std::pair<double, double>>> parse_trace(const std::string& text);
/// "HOST:PORT" with a numeric port. Errors: usage.
Result<std::pair<std::string, int>> parse_address(const std::string& text);
/// Quotes and escapes text as a TOML basic string.
std::string toml_string(const std::string& text);
std::vector<std::string> split(const std::string& text, char separator);

/// Plots values over time as `height` lines of `width` columns, oldest left, between `low` and `high`;
/// nullopt = not measured (blank). Eighth blocks if `unicode`, else '.' and '#'.
std::vector<std::string> area_chart(const std::vector<std::optional<double>>& values, double low, double high,
                                    int height, bool unicode);

}  // namespace rivulet::runtime::cli
