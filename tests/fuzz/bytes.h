#pragma once
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "tests/fuzz/target.h"

/// Conversions between bytes, text and numbers.
namespace rivulet::fuzz {

inline std::string_view text_of(Input input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

inline Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

template <class T>
T number_at(Input bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
void put_number(std::span<std::byte> bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

inline void append(Bytes& bytes, Input more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

}  // namespace rivulet::fuzz
