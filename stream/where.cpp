#include "stream/decoder/where.h"

namespace rivulet::stream {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

Result<Where> parse_where(std::string_view text) {
  const auto sign = text.find('=');
  const std::string_view field = trimmed(text.substr(0, sign));
  std::string_view value = sign == std::string_view::npos ? "" : trimmed(text.substr(sign + 1));
  const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  if (quoted) value = value.substr(1, value.size() - 2);
  if (field.empty() || (value.empty() && !quoted))
    return Error{ErrorCode::invalid_config,
                 "\"" + std::string(text) + "\" must be " + std::string(where_form)};
  return Where{std::string(field), std::string(value)};
}

bool is_where(std::string_view text) {
  return text.empty() || static_cast<bool>(parse_where(text));
}

}  // namespace rivulet::stream
