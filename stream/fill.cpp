#include "stream/decoder/fill.h"

#include "stream/decoder/base.h"

namespace rivulet::stream {

std::optional<Fill> parse_fill(std::string_view text) noexcept {
  if (text == "drop") return Fill{};
  if (text == "mean") return Fill{Fill::Kind::mean};
  if (text == "last") return Fill{Fill::Kind::last};
  const auto value = parse_number(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return Fill{Fill::Kind::number, *value};
}

bool is_fill(std::string_view text) {
  return parse_fill(text).has_value();
}

bool is_fill_without_mean(std::string_view text) {
  return text != "mean" && is_fill(text);
}

}  // namespace rivulet::stream
