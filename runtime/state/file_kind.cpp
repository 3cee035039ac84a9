#include "runtime/state/file_kind.h"

#include <algorithm>

#include "runtime/state/image_format.h"

namespace rivulet::runtime {

std::string_view kind_of_file(std::span<const std::byte> begin) {
  const std::string_view text = image::as_text(begin);
  if (text.starts_with(image::magic)) return "a state of Rivulet (rivulet checkpoint show)";
  if (text.starts_with("PK\x03\x04")) return "a file saved by torch (rivulet model inspect)";
  // A safetensors file begins with the length of its header (8 bytes), then the header.
  if (text.size() > 9 && text.substr(4, 4) == std::string_view("\0\0\0\0", 4) && text[8] == '{')
    return "a safetensors file, as written by rivulet checkpoint export";
  const auto printed = [](char c) { return c == '\n' || c == '\r' || c == '\t' || (c >= ' ' && c != 0x7f); };
  if (!text.empty() && std::ranges::all_of(text, printed)) return "a text file";
  return "";
}

}  // namespace rivulet::runtime
