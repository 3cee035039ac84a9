#include "runtime/decisions/json_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace rivulet::runtime {
namespace {

void put_digits(std::string& out, auto value) {
  char digits[32];
  out.append(digits, std::to_chars(digits, std::end(digits), value).ptr);
}

}  // namespace

void JsonWriter::separate() {
  if (out_.back() != '{' && out_.back() != '[') out_ += ',';
}

void JsonWriter::begin(const char* name) {
  separate();
  out_ += '"';
  out_ += name;
  out_ += "\":";
}

void JsonWriter::open(char bracket) {
  out_ += bracket;
}
void JsonWriter::close(char bracket) {
  out_ += bracket;
}
void JsonWriter::put_signed(std::int64_t value) {
  put_digits(out_, value);
}
void JsonWriter::put_unsigned(std::uint64_t value) {
  put_digits(out_, value);
}

/// Writes -0 as "-0.0": JSON readers would take "-0" for an integer.
template <class T>
void JsonWriter::put_real(T value) {
  if (std::isnan(value)) {
    out_ += "\"nan\"";
  } else if (std::isinf(value)) {
    out_ += value > 0 ? "\"inf\"" : "\"-inf\"";
  } else if (value == 0 && std::signbit(value)) {
    out_ += "-0.0";
  } else {
    put_digits(out_, value);
  }
}
template void JsonWriter::put_real(double value);
template void JsonWriter::put_real(float value);

void JsonWriter::put(std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(),
                                 [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (!plain) {
    out_ += nlohmann::json(text).dump();
    return;
  }
  out_ += '"';
  out_ += text;
  out_ += '"';
}

}  // namespace rivulet::runtime
