#pragma once
#include "core/settings.h"
#include "stream/decoder/decimal.h"
#include "stream/decoder/fill.h"
#include "stream/decoder/where.h"

/// Keys common to all text formats, each with its own name "decode.<format>.<key>".
namespace rivulet::stream {

constexpr Key shape_key(std::string_view name) {
  return {.name = name,
          .type = KeyType::integers,
          .text = "[]",
          .help = "shape of one row, such as [1, 28, 28]; empty: one axis over all features",
          .least = 1,
          .most = 1e7,
          .sample = "#[]"};
}
constexpr Key scale_key(std::string_view name) {
  return {.name = name,
          .type = KeyType::numbers,
          .text = "\"auto\"",
          .help =
              "normalizes to mean 0 and standard deviation 1, measured in training; or the factor in "
              "x * scale + shift, [one per feature]",
          .choices = "auto",
          .sample = "#\"auto\""};
}
constexpr Key shift_key(std::string_view name) {
  return {
      .name = name,
      .type = KeyType::numbers,
      .text = "0.0",
      .help =
          "added after scaling, in 64 bits, also with scale \"auto\"; for values like 1e8 + 0.5, which 32 "
          "bits cannot represent",
      .sample = "#0.0"};
}
constexpr Key decimal_key(std::string_view name, std::string_view help) {
  return {.name = name,
          .type = KeyType::text,
          .text = "\".\"",
          .help = help,
          .fits = is_decimal_sign,
          .form = decimal_form,
          .sample = "#\".\""};
}
constexpr Key where_key(std::string_view name, std::string_view help) {
  return {.name = name,
          .type = KeyType::text,
          .text = "\"\"",
          .help = help,
          .fits = is_where,
          .form = where_form,
          .sample = "#\"type = reading\""};
}
constexpr Key missing_key(std::string_view name) {
  return {.name = name,
          .type = KeyType::numbers,
          .text = "[]",
          .help = "codes of missing values, in the units of the records (before scale and shift)",
          .sample = "#[-999]"};
}
constexpr Key fill_key(std::string_view name) {
  return {.name = name,
          .type = KeyType::text,
          .text = "\"mean\"",
          .help =
              "mean | last | drop | a number: replacement of a missing value; drop discards the row and is "
              "the default without scale \"auto\"",
          .fits = is_fill,
          .form = fill_form,
          .or_number = true,
          .sample = "#\"mean\""};
}

}  // namespace rivulet::stream
