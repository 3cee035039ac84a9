#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/fields.h"
#include "core/time.h"

/// Encodes values little-endian and without padding: numbers and enums as they are, durations as nanoseconds,
/// strings and lists after a count of 4 bytes, optional values after a bool, structs field by field in the
/// order of their list (core/fields.h). The same traversal gives wire bytes and hashes. Pure; any thread.
namespace rivulet::sync {

static_assert(std::endian::native == std::endian::little, "big-endian hosts need a byte swap here");

template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/// Appends the bytes of values.
class FieldWriter {
 public:
  explicit FieldWriter(std::vector<std::byte>& out) : out_(out) {}
  void operator()(const char*, const auto& value) { put(value); }

  void put(const Plain auto& value) { put_bytes(std::as_bytes(std::span(&value, 1))); }
  void put(const Duration& value) { put(std::int64_t{value.count()}); }
  void put(const std::string& text) {
    put(static_cast<std::uint32_t>(text.size()));
    put_bytes(std::as_bytes(std::span(text)));
  }
  template <class T>
  void put(const std::vector<T>& items) {
    put(static_cast<std::uint32_t>(items.size()));
    for (const T& item : items) put(item);
  }
  template <class T>
  void put(const std::optional<T>& item) {
    put(item.has_value());
    if (item) put(*item);
  }
  void put(const HasFields auto& value) { fields(value, *this); }

 private:
  void put_bytes(std::span<const std::byte> bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  std::vector<std::byte>& out_;
};

std::vector<std::byte> bytes_of_fields(const auto& value) {
  std::vector<std::byte> out;
  FieldWriter(out).put(value);
  return out;
}

/// Reads values from the front of untrusted bytes. The first truncated or impossible value is final: fine()
/// stays false, and the values read are invalid.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool fine() const { return fine_; }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  void operator()(const char*, auto& value) { get(value); }

  void get(Plain auto& value) {
    if (const auto bytes = cut(sizeof value); fine_) std::memcpy(&value, bytes.data(), sizeof value);
  }
  void get(bool& value) {
    std::uint8_t byte = 0;
    get(byte);
    fine_ = fine_ && byte <= 1;
    value = byte == 1;
  }
  void get(Duration& value) {
    std::int64_t count = 0;
    get(count);
    value = Duration(count);
  }
  void get(std::string& text) {
    const auto bytes = cut(length());
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  template <class T>
  void get(std::vector<T>& items) {
    // Each item takes at least one byte: a larger count is invalid and must not allocate.
    const std::uint32_t count = length();
    if (count > bytes_.size()) fine_ = false;
    for (std::uint32_t i = 0; i < count && fine_; ++i) get(items.emplace_back());
  }
  template <class T>
  void get(std::optional<T>& item) {
    bool there = false;
    get(there);
    item.reset();
    if (there && fine_) get(item.emplace());
  }
  void get(HasFields auto& value) { fields(value, *this); }

  /// Removes and returns the next `n` bytes.
  std::span<const std::byte> cut(std::size_t n) {
    if (!fine_ || bytes_.size() < n) fine_ = false;
    if (!fine_) return {};
    const auto front = bytes_.first(n);
    bytes_ = bytes_.subspan(n);
    return front;
  }

 private:
  std::uint32_t length() {
    std::uint32_t n = 0;
    get(n);
    return n;
  }
  std::span<const std::byte> bytes_;
  bool fine_ = true;
};

}  // namespace rivulet::sync
