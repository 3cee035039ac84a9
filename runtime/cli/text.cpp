#include "runtime/cli/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace rivulet::runtime::cli {
namespace {

std::optional<double> number(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || read != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

Error usage(std::string message) {
  return {ErrorCode::usage, std::move(message)};
}

}  // namespace

std::string grouped(std::uint64_t n) {
  const std::string digits = std::to_string(n);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text.push_back(' ');
    text.push_back(digits[i]);
  }
  return text;
}

std::string human_bytes(double bytes) {
  static constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 999.5 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 || bytes >= 99.95 ? fmt::format("{:.0f} {}", bytes, units[unit])
                                     : fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::string share_or_dash(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : "-";
}

std::string human_share(double share) {
  const double percent = 100 * share;
  return percent < 0.95 ? fmt::format("{:.2g} %", percent)
                        : fmt::format("{:.{}f} %", percent, percent < 99.95 ? 1 : 0);
}

std::string human_seconds(double seconds) {
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1000);
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<long>(std::lround(seconds));
  if (whole < 120) return fmt::format("{} s", whole);
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (;;) {
    const auto end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

std::string not_empty(const std::string& text) {
  return text.empty() ? "must not be empty" : "";
}

Result<std::vector<double>> parse_rates(const std::string& flag, const std::string& text) {
  std::vector<double> rates;
  for (const auto& item : split(text, ',')) {
    const auto rate = number(item);
    if (!rate || *rate < 0) {
      return usage(
          fmt::format("{}: '{}' is not a rate; expected rows per second for each partition, such as 800,400",
                      flag, item));
    }
    rates.push_back(*rate);
  }
  return rates;
}

Result<std::vector<std::pair<double, double>>> parse_trace(const std::string& text) {
  std::vector<std::pair<double, double>> trace;
  for (const auto& item : split(text, ',')) {
    const auto colon = item.find(':');
    const auto from = colon == std::string::npos ? std::optional<double>(0) : number(item.substr(0, colon));
    const auto rate = number(colon == std::string::npos ? item : item.substr(colon + 1));
    if (!from || !rate || *from < 0 || *rate < 0) {
      return usage(
          fmt::format("--rates: '{}' is neither a rate such as 800 nor a trace such as 0:800,15:200", item));
    }
    if (!trace.empty() && *from <= trace.back().first) {
      return usage(fmt::format("--rates: '{}': the seconds of a trace must increase", text));
    }
    trace.emplace_back(*from, *rate);
  }
  return trace;
}

std::string clipped(const std::string& text, int width) {
  int columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts_character = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (starts_character && columns++ == width) return text.substr(0, i);
  }
  return text;
}

Result<std::pair<std::string, int>> parse_address(const std::string& text) {
  const auto colon = text.rfind(':');
  const auto port = colon == std::string::npos ? std::nullopt : number(text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535 || *port != std::floor(*port) || colon == 0) {
    return usage(fmt::format("'{}' is not HOST:PORT", text));
  }
  return std::pair{text.substr(0, colon), static_cast<int>(*port)};
}

std::string toml_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::vector<std::string> area_chart(const std::vector<std::optional<double>>& values, double low, double high,
                                    int height, bool unicode) {
  static constexpr const char* eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<std::string> lines(static_cast<std::size_t>(height));
  for (const auto& value : values) {
    const double share = value ? std::clamp((*value - low) / (high - low), 0.0, 1.0) : 0.0;
    // Every measured value gets at least one mark, to distinguish 0 from "not measured".
    const int filled = value ? std::max(1, static_cast<int>(std::lround(share * height * 8))) : 0;
    for (int line = 0; line < height; ++line) {
      const int mark = std::clamp(filled - (height - 1 - line) * 8, 0, 8);
      auto& text = lines[static_cast<std::size_t>(line)];
      if (unicode) {
        text += eighths[mark];
      } else {
        text += mark == 0 ? ' ' : (mark <= 4 ? '.' : '#');
      }
    }
  }
  return lines;
}

}  // namespace rivulet::runtime::cli
