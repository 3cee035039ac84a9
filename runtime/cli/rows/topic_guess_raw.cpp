#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/cli/rows/topic_guess.h"
#include "runtime/cli/text.h"

namespace rivulet::runtime::cli {
namespace {

template <class T>
T read(const std::string& record, std::size_t at) {
  T value{};
  std::memcpy(&value, record.data() + at, sizeof value);
  return value;
}

/// Whether x is a typical measured value. Other data, read as floats, rarely passes in all records.
bool plausible(float x) {
  return x == 0 || (std::isfinite(x) && std::abs(x) > 1e-12F && std::abs(x) < 1e12F);
}

bool floats_from(const std::vector<std::string>& records, std::size_t first) {
  return std::all_of(records.begin(), records.end(), [&](const std::string& record) {
    for (std::size_t at = first; at < record.size(); at += sizeof(float))
      if (!plausible(read<float>(record, at))) return false;
    return true;
  });
}

/// The shape if `bytes` fit a square image with one or three channels.
std::optional<std::string> picture_shape(std::size_t bytes) {
  for (const std::size_t channels : {1, 3}) {
    const std::size_t pixels = bytes / channels;
    const auto side = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(pixels))));
    if (side >= 8 && channels * side * side == bytes)
      return fmt::format("[{}, {}, {}]", channels, side, side);
  }
  return std::nullopt;
}

struct Label {
  const char* name;
  std::size_t bytes;
  double (*value)(const std::string&);
};
constexpr std::array labels{
    Label{"f32", 4, [](const std::string& r) { return static_cast<double>(read<float>(r, 0)); }},
    Label{"i64", 8, [](const std::string& r) { return static_cast<double>(read<std::int64_t>(r, 0)); }},
    Label{"i32", 4, [](const std::string& r) { return static_cast<double>(read<std::int32_t>(r, 0)); }},
    Label{"u8", 1, [](const std::string& r) { return static_cast<double>(read<std::uint8_t>(r, 0)); }}};

/// Returns the highest class if all labels are integers from 0 to 999 and not all 0.
std::optional<double> highest_class(const std::vector<std::string>& records, const Label& label) {
  double highest = 0;
  for (const auto& record : records) {
    const double x = label.value(record);
    if (!(x >= 0 && x < 1000) || x != std::floor(x)) return std::nullopt;
    highest = std::max(highest, x);
  }
  return highest > 0 ? std::optional(highest) : std::nullopt;
}

Guess guess_of(const char* label, const char* features, const std::string& shape,
               std::optional<double> highest) {
  Guess guess{"raw", {}, {}};
  guess.keys = {{"decode.format", "\"raw\""},
                {"decode.raw.label", toml_string(label)},
                {"decode.raw.features", toml_string(features)},
                {"decode.raw.shape", shape}};
  guess.notes.push_back(fmt::format(
      "rows: a label ({}), then {} values ({}); a guess, since raw records do not describe their layout",
      label, shape, features));
  if (highest) {
    guess.keys.emplace_back("train.loss", "\"cross_entropy\"");
    guess.keys.emplace_back("model.classes", fmt::format("{:g}", *highest + 1));
    guess.notes.push_back(fmt::format("to predict: classes 0 to {:g}", *highest));
  } else {
    guess.keys.emplace_back("train.loss", "\"mse\"");
    guess.notes.emplace_back("to predict: a number");
  }
  return guess;
}

}  // namespace

std::optional<Guess> raw_guess(const std::vector<std::string>& records) {
  const std::size_t size = records.front().size();
  const bool alike =
      std::all_of(records.begin(), records.end(), [&](const auto& r) { return r.size() == size; });
  if (!alike || size < 2 || std::endian::native != std::endian::little) return std::nullopt;
  if (const auto shape = picture_shape(size - 1))
    if (const auto highest = highest_class(records, labels.back()))
      return guess_of("u8", "u8", *shape, highest);
  for (const auto& label : labels) {
    if (size <= label.bytes || (size - label.bytes) % sizeof(float) != 0) continue;
    if (!floats_from(records, label.bytes)) continue;
    const auto highest = highest_class(records, label);
    const bool number = std::string_view(label.name) == "f32" && floats_from(records, 0);
    if (!highest && !number) continue;
    return guess_of(label.name, "f32", fmt::format("[{}]", (size - label.bytes) / sizeof(float)), highest);
  }
  return std::nullopt;
}

}  // namespace rivulet::runtime::cli
