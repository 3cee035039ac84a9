#include "sync/coding/rows.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>

#include "sync/message/field_bytes.h"

namespace rivulet::sync {
namespace {

// Layout: rows (u32), bytes of the body (u32), the deflated body. Body: number of distinct values (u16) and
// the values, or only `usual_kinds`, then the index of each feature (u8); or 0 and the features, ordered by
// byte (all first bytes, then all second bytes); then the targets.
constexpr std::size_t frame_bytes = 8;
constexpr std::size_t kinds_max = 256;
constexpr std::uint16_t usual_kinds = 0xffff;

std::uint32_t bits_of(float number) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}

/// Distinct values by their bits, each with its index.
using Kinds = std::map<std::uint32_t, std::uint8_t>;

/// Returns the usual values; empty if `numbers` has others.
Kinds usual_among(std::span<const float> usual, std::span<const float> numbers) {
  Kinds kinds;
  for (std::size_t i = 0; i < usual.size(); ++i)
    kinds.try_emplace(bits_of(usual[i]), static_cast<std::uint8_t>(i));
  const bool all =
      std::ranges::all_of(numbers, [&](float number) { return kinds.contains(bits_of(number)); });
  return all ? kinds : Kinds();
}

/// Returns the values that occur; empty if there are too many.
Kinds kinds_of(std::span<const float> numbers) {
  Kinds kinds;
  for (const float number : numbers) {
    kinds.try_emplace(bits_of(number), 0);
    if (kinds.size() > kinds_max) return {};
  }
  std::uint8_t index = 0;
  for (auto& [bits, at] : kinds) at = index++;
  return kinds;
}

std::vector<std::byte> body_of(std::span<const float> features, std::span<const float> targets,
                               std::span<const float> usual) {
  std::vector<std::byte> body;
  FieldWriter writer(body);
  Kinds kinds = usual_among(usual, features);
  if (!kinds.empty()) {
    writer.put(usual_kinds);
  } else {
    kinds = kinds_of(features);
    writer.put(static_cast<std::uint16_t>(kinds.size()));
    for (const auto& [bits, index] : kinds) writer.put(bits);
  }
  if (kinds.empty()) {
    for (std::size_t byte = 0; byte < sizeof(float); ++byte)
      for (const float number : features)
        body.push_back(static_cast<std::byte>(bits_of(number) >> (8 * byte)));
  } else {
    for (const float number : features) body.push_back(std::byte{kinds.at(bits_of(number))});
  }
  for (const float number : targets) writer.put(number);
  return body;
}

Error broken(const char* what) {
  return {ErrorCode::protocol, std::string("injected rows: ") + what};
}

std::size_t largest_body(const RowShape& shape, std::size_t rows) {
  return sizeof(std::uint16_t) + kinds_max * sizeof(float) +
         rows * (shape.columns() + shape.targets) * sizeof(float);
}

/// Returns exactly `size` bytes, or nothing.
std::vector<std::byte> inflated(std::span<const std::byte> bytes, std::size_t size) {
  std::vector<std::byte> body(size);
  uLongf written = size;
  uLong read = bytes.size();
  const int done = uncompress2(reinterpret_cast<Bytef*>(body.data()), &written,
                               reinterpret_cast<const Bytef*>(bytes.data()), &read);
  if (done != Z_OK || written != size || read != bytes.size()) return {};
  return body;
}

bool read_features(FieldReader& in, const std::vector<float>& usual, std::vector<float>& features) {
  std::uint16_t kinds = 0;
  in.get(kinds);
  const bool are_usual = kinds == usual_kinds && !usual.empty();
  if (are_usual) kinds = static_cast<std::uint16_t>(usual.size());
  if (!in.fine() || kinds > kinds_max) return false;
  std::vector<float> numbers = are_usual ? usual : std::vector<float>(kinds);
  if (!are_usual)
    for (float& number : numbers) in.get(number);
  const auto body = in.cut(kinds > 0 ? features.size() : features.size() * sizeof(float));
  if (!in.fine()) return false;
  for (std::size_t i = 0; i < features.size(); ++i) {
    if (kinds > 0) {
      const auto index = std::to_integer<std::size_t>(body[i]);
      if (index >= kinds) return false;
      features[i] = numbers[index];
      continue;
    }
    std::uint32_t bits = 0;
    for (std::size_t byte = 0; byte < sizeof(float); ++byte)
      bits |= std::to_integer<std::uint32_t>(body[byte * features.size() + i]) << (8 * byte);
    std::memcpy(&features[i], &bits, sizeof bits);
  }
  return true;
}

bool all_finite(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); });
}

}  // namespace

std::vector<std::byte> encode_rows(const BatchView& rows, const RowFormat& format, std::size_t bytes_max) {
  const RowShape& shape = format.shape;
  for (std::size_t n = rows.rows; n > 0; n /= 2) {
    const auto body = body_of(rows.features.first(n * shape.columns()), rows.targets.first(n * shape.targets),
                              format.usual);
    uLongf size = compressBound(body.size());
    std::vector<std::byte> out;
    FieldWriter writer(out);
    writer.put(static_cast<std::uint32_t>(n));
    writer.put(static_cast<std::uint32_t>(body.size()));
    out.resize(frame_bytes + size);
    const int done =
        compress2(reinterpret_cast<Bytef*>(out.data() + frame_bytes), &size,
                  reinterpret_cast<const Bytef*>(body.data()), body.size(), Z_DEFAULT_COMPRESSION);
    out.resize(frame_bytes + size);
    if (done == Z_OK && out.size() <= bytes_max) return out;
  }
  return {};
}

Result<RowBlock> decode_rows(std::span<const std::byte> bytes, const RowFormat& format,
                             std::size_t rows_max) {
  const RowShape& shape = format.shape;
  FieldReader in(bytes);
  std::uint32_t rows = 0;
  std::uint32_t size = 0;
  in.get(rows);
  in.get(size);
  if (!in.fine()) return broken("truncated");
  if (rows == 0 || rows > rows_max) return broken("too many rows, or none");
  if (size > largest_body(shape, rows)) return broken("longer than the maximum for this job's rows");
  const auto body = inflated(bytes.subspan(frame_bytes), size);
  if (body.empty()) return broken("damaged, or their length is wrong");
  FieldReader inside(body);
  RowBlock copied{std::vector<float>(std::size_t{rows} * shape.columns()),
                  std::vector<float>(std::size_t{rows} * shape.targets), rows};
  if (!read_features(inside, format.usual, copied.features)) return broken("features are truncated");
  for (float& target : copied.targets) inside.get(target);
  if (!inside.fine() || !inside.empty()) return broken("their shape differs from this job's");
  const bool features_fit = std::ranges::all_of(
      copied.features, [&](float x) { return std::isfinite(x) || (format.may_miss && std::isnan(x)); });
  if (!features_fit || !all_finite(copied.targets)) return broken("a value is not finite");
  return copied;
}

}  // namespace rivulet::sync
