#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "stream/decoder.h"
#include "tests/support/decode_settings.h"

/// Shared by the decoder tests: one configuration per format, and a function that reads all rows of a record.
namespace rivulet::testing {

using stream::DecodeConfig;
using stream::Decoded;
using stream::Decoder;

inline std::unique_ptr<Decoder> make_decoder(const DecodeConfig& config) {
  for (const auto* entry : stream::builtin_decoders()) {
    if (entry->name != config.format) continue;
    auto made = entry->make(with_decode_defaults(config));
    if (!made) FAIL(made.error().message);
    return std::move(made).value();
  }
  FAIL("no such format");
  return nullptr;
}

inline Record record_of(const std::string& bytes) {
  return {.value = std::as_bytes(std::span(bytes.data(), bytes.size()))};
}

/// Result of decoding a record: rows (target last), and drops by reason, in order.
struct Read {
  std::vector<std::vector<float>> rows;
  std::vector<DropReason> drops;
  std::vector<std::string> details;
};

inline Read read_all(Decoder& decoder, const Record& record) {
  Read read;
  std::vector<float> features(decoder.shape().columns());
  std::vector<float> targets(decoder.shape().targets);
  decoder.begin(record);
  for (auto step = decoder.next({features, targets}); step.kind != Decoded::Kind::end;
       step = decoder.next({features, targets})) {
    if (step.kind == Decoded::Kind::dropped) {
      read.drops.push_back(step.reason);
      read.details.emplace_back(decoder.detail());
      continue;
    }
    read.rows.push_back(features);
    read.rows.back().insert(read.rows.back().end(), targets.begin(), targets.end());
  }
  return read;
}

inline Read read_text(const DecodeConfig& config, const std::string& text) {
  return read_all(*make_decoder(config), record_of(text));
}

template <class T>
std::string le(std::initializer_list<T> values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::copy(values.begin(), values.end(), reinterpret_cast<T*>(bytes.data()));
  return bytes;
}

inline constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
inline constexpr float infinite = std::numeric_limits<float>::infinity();

inline DecodeConfig raw_config(const std::string& label, const std::string& features, std::int64_t columns) {
  DecodeConfig config{.format = "raw", .classes = 10, .shape = {columns}};
  set_raw(config.settings, label, features);
  return config;
}
inline DecodeConfig csv_config() {
  return {.format = "csv", .classes = 3, .features = {"0", "1"}, .target = "2"};
}
inline DecodeConfig json_config() {
  return {.format = "json", .classes = 3, .features = {"temp", "current[0:2]", "a.b[1]"}, .target = "label"};
}
inline std::string json_row(const std::string& temp, const std::string& label) {
  return R"({"temp":)" + temp + R"(,"current":[1,2,3],"a":{"b":[7,8]},"label":)" + label + "}";
}

}  // namespace rivulet::testing
