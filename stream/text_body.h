#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rivulet::stream {

enum class TextKind : std::uint8_t { json, csv };

/// Where the text of a record begins: behind a byte-order mark of UTF-8, behind the frame of Confluent's
/// serializers (a zero byte and the number of a schema, big-endian), or where the record does.
struct TextBody {
  std::size_t begin = 0;
  std::optional<std::uint32_t> schema;  ///< of the frame
  bool binary = false;                  ///< framed, and what follows is not text of this kind: begin is 0
};

/// Pure; looks at 261 bytes at most.
TextBody text_body(std::span<const std::byte> record, TextKind kind) noexcept;

/// Bytes of a byte-order mark at the begin of a text: 3 or 0.
std::size_t byte_order_mark(std::string_view text) noexcept;

/// "looks like Avro or Protobuf in Confluent's framing, schema 7", for people.
std::string words_for_binary(std::uint32_t schema);

}  // namespace rivulet::stream
