#include "runtime/status/page/html.h"

#include <fmt/format.h>

namespace rivulet::runtime::html {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string grouped(const std::string& digits) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-') out += "&nbsp;";
    out += digits[i];
  }
  return out;
}

std::string count(Whole value) {
  return value ? grouped(std::to_string(*value)) : "–";
}

std::string decimal(Number value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "–";
}

std::string tenths(Number value) {
  return decimal(value, 1);
}

std::string ten_thousandths(Number value) {
  return decimal(value, 4);
}

std::string seconds(Number value) {
  return tenths(value) + "&nbsp;s";
}

std::string percent(Number value) {
  return value ? fmt::format("{:.1f}&nbsp;%", 100 * *value) : "–";
}

std::string milliseconds(Number value) {
  return value ? fmt::format("{:.1f}&nbsp;ms", 1000 * *value) : "–";
}

std::string bytes(Whole value) {
  double n = static_cast<double>(value.value_or(0));
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; n >= 1000 && unit + 1 < std::size(units); ++unit) n /= 1000;
  return fmt::format("{:.{}f}&nbsp;{}", n, unit == 0 ? 0 : 1, units[unit]);
}

std::string number(Number value) {
  return value ? fmt::format("{:.4g}", *value) : "–";
}

Number as_number(Number value) {
  return value;
}

Number as_number(Whole value) {
  return value ? Number(static_cast<double>(*value)) : std::nullopt;
}

std::string each(const NodeReport::Counts& /*counts*/) {
  return "";
}
Number as_number(const NodeReport::Counts& /*counts*/) {
  return std::nullopt;
}

}  // namespace rivulet::runtime::html
