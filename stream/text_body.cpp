#include "stream/text_body.h"

#include <algorithm>

namespace rivulet::stream {
namespace {

constexpr std::size_t frame_bytes = 5;
constexpr std::size_t looked_at = 256;
// Schema numbers begin at 1, in hosted registries at 100001. Larger values are not a frame: "\0{\0" is
// UTF-16.
constexpr std::uint32_t schemas_max = 1U << 28U;

/// Whether a byte can occur in lines of text; binary numbers contain others.
bool is_text(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 0x20 && byte != 0x7f) || c == '\t' || c == '\r' || c == '\n';
}

bool looks_like(std::string_view text, TextKind kind) noexcept {
  const std::string_view head = text.substr(0, looked_at);
  if (kind == TextKind::csv) return !head.empty() && std::all_of(head.begin(), head.end(), is_text);
  const auto first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (head[first] == '{' || head[first] == '[');
}

std::uint32_t big_endian(std::string_view bytes) noexcept {
  std::uint32_t number = 0;
  for (const char c : bytes) number = number << 8U | static_cast<unsigned char>(c);
  return number;
}

}  // namespace

std::size_t byte_order_mark(std::string_view text) noexcept {
  return text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
}

TextBody text_body(std::span<const std::byte> record, TextKind kind) noexcept {
  const std::string_view text{reinterpret_cast<const char*>(record.data()), record.size()};
  if (text.size() <= frame_bytes || text.front() != '\0') return {.begin = byte_order_mark(text)};
  const std::uint32_t schema = big_endian(text.substr(1, 4));
  if (schema == 0 || schema > schemas_max) return {};
  const std::string_view rest = text.substr(frame_bytes);
  const std::size_t mark = byte_order_mark(rest);
  if (!looks_like(rest.substr(mark), kind)) return {.schema = schema, .binary = true};
  return {.begin = frame_bytes + mark, .schema = schema};
}

std::string words_for_binary(std::uint32_t schema) {
  return "looks like Avro or Protobuf in Confluent's wire format, schema " + std::to_string(schema);
}

}  // namespace rivulet::stream
