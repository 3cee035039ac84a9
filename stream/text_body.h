#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rivulet::stream {

enum class TextKind : std::uint8_t { json, csv };

/// Start of a record's text: after a UTF-8 byte-order mark, after the frame of Confluent's serializers (a
/// zero byte and the schema number, big-endian), or 0.
struct TextBody {
  std::size_t begin = 0;
  std::optional<std::uint32_t> schema;  ///< number from the frame
  bool binary = false;                  ///< framed, but the content is not text of this kind: begin is 0
};

/// Pure; reads at most 261 bytes.
TextBody text_body(std::span<const std::byte> record, TextKind kind) noexcept;

/// Size of the byte-order mark at the start of a text: 3 or 0.
std::size_t byte_order_mark(std::string_view text) noexcept;

/// "looks like Avro or Protobuf in Confluent's framing, schema 7", for messages.
std::string words_for_binary(std::uint32_t schema);

}  // namespace rivulet::stream
