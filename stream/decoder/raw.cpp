#include <bit>
#include <cstring>

#include "core/vector_code.h"
#include "stream/decoder/base.h"
#include "stream/decoder/fill.h"

namespace rivulet::stream {
namespace {

static_assert(std::endian::native == std::endian::little, "raw rows are little-endian and read in place");

constexpr std::string_view raw_label = "decode.raw.label";
constexpr std::string_view raw_features = "decode.raw.features";

enum class Number : std::uint8_t { none, u8, i16, i32, i64, f32 };

struct NumberName {
  std::string_view name;
  Number number;
  std::size_t bytes;
};
constexpr NumberName label_numbers[] = {{"none", Number::none, 0},
                                        {"u8", Number::u8, 1},
                                        {"i32", Number::i32, 4},
                                        {"i64", Number::i64, 8},
                                        {"f32", Number::f32, 4}};
constexpr NumberName feature_numbers[] = {
    {"u8", Number::u8, 1}, {"i16", Number::i16, 2}, {"f32", Number::f32, 4}};

template <class T>
T read(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double read_label(Number number, const std::byte* at) noexcept {
  switch (number) {
    case Number::u8: return read<std::uint8_t>(at);
    case Number::i32: return read<std::int32_t>(at);
    case Number::i64: return static_cast<double>(read<std::int64_t>(at));
    case Number::f32: return read<float>(at);
    default: return 0;
  }
}

double read_feature(Number number, const std::byte* at) noexcept {
  switch (number) {
    case Number::u8: return read<std::uint8_t>(at);
    case Number::i16: return read<std::int16_t>(at);
    default: return read<float>(at);
  }
}

/// Converts all features of a row, x * scale + shift; returns false if one is not finite. One branch-free
/// pass that vectorizes: the check is an OR over the row; callers search for the column only on failure.
template <class T>
[[gnu::always_inline]] inline bool convert(const std::byte* __restrict from, float* __restrict out,
                                           std::size_t count, float scale, float shift) noexcept {
  std::uint32_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    T x;
    std::memcpy(&x, from + i * sizeof x, sizeof x);
    const float y = static_cast<float>(x) * scale + shift;
    out[i] = y;
    wrong |= static_cast<std::uint32_t>(!(std::fabs(y) <= std::numeric_limits<float>::max()));
  }
  return wrong == 0;
}

RIVULET_VECTOR_CODE bool convert_u8(const std::byte* from, float* out, std::size_t count, float scale,
                                    float shift) noexcept {
  return convert<std::uint8_t>(from, out, count, scale, shift);
}
RIVULET_VECTOR_CODE bool convert_i16(const std::byte* from, float* out, std::size_t count, float scale,
                                     float shift) noexcept {
  return convert<std::int16_t>(from, out, count, scale, shift);
}
RIVULET_VECTOR_CODE bool convert_f32(const std::byte* from, float* out, std::size_t count, float scale,
                                     float shift) noexcept {
  return convert<float>(from, out, count, scale, shift);
}

/// Contiguous rows: label bytes, then feature bytes.
class RawDecoder final : public DecoderBase {
 public:
  RawDecoder(const DecodeConfig& config, RowShape shape, const NumberName& label, const NumberName& feature)
      : DecoderBase(config, std::move(shape)),
        label_(label),
        feature_(feature),
        row_bytes_(label.bytes + feature.bytes * columns()) {
    if (!has_codes()) has_every_value();
  }

 private:
  std::optional<DropReason> open_record(std::span<const std::byte> value) noexcept override {
    rest_ = value;
    if (!value.empty()) return std::nullopt;
    describe("the record is empty");
    return DropReason::wrong_shape;
  }

  Decoded next_row(RowSlot out) noexcept override {
    if (rest_.empty()) return end();
    if (rest_.size() < row_bytes_) {
      rest_ = {};
      describe("the record ends inside a row");
      return drop(DropReason::wrong_shape);
    }
    const std::byte* at = rest_.data();
    rest_ = rest_.subspan(row_bytes_);
    if (labelled()) {
      if (const auto wrong = target_into(out.targets[0], read_label(label_.number, at))) return drop(*wrong);
    }
    if (has_codes()) return with_codes(at + label_.bytes, out.features);
    if (features(at + label_.bytes, out.features)) return row();
    describe_nonfinite(out.features);
    return drop(DropReason::nonfinite_value);
  }

  /// Converts value by value, because some values are missing-value codes.
  Decoded with_codes(const std::byte* at, std::span<float> out) noexcept {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double x = read_feature(feature_.number, at + i * feature_.bytes);
      const auto wrong = feature_into(out[i], x, i);
      if (!wrong) continue;
      std::array<char, 32> room{};
      describe(*wrong, {.name = std::to_string(i), .column = i, .token = std::string(text_of(x, room))});
      return drop(*wrong);
    }
    return row();
  }

  bool features(const std::byte* at, std::span<float> out) const noexcept {
    switch (feature_.number) {
      case Number::u8: return convert_u8(at, out.data(), out.size(), scale(), shift());
      case Number::i16: return convert_i16(at, out.data(), out.size(), scale(), shift());
      default: return convert_f32(at, out.data(), out.size(), scale(), shift());
    }
  }

  void describe_nonfinite(std::span<const float> row) noexcept {
    std::size_t column = 0;
    while (column < row.size() && std::isfinite(row[column])) ++column;
    describe("a feature is not finite", "column " + std::to_string(column));
  }

  NumberName label_;
  NumberName feature_;
  std::size_t row_bytes_;
  std::span<const std::byte> rest_;
};

const NumberName* find(std::span<const NumberName> names, std::string_view name) {
  for (const auto& entry : names)
    if (entry.name == name) return &entry;
  return nullptr;
}

Error unknown(std::string_view key, std::string_view value, std::span<const NumberName> names) {
  std::string message = std::string(key) + " is \"" + std::string(value) + "\"; it can be";
  for (const auto& entry : names) message += (&entry == names.data() ? " " : ", ") + std::string(entry.name);
  return {ErrorCode::invalid_config, std::move(message)};
}

Result<std::unique_ptr<Decoder>> make(const DecodeConfig& config) {
  const std::string& label_name = config.settings.text(raw_label);
  const NumberName* label = find(label_numbers, label_name);
  if (label == nullptr) return unknown(raw_label, label_name, label_numbers);
  const std::string& feature_name = config.settings.text(raw_features);
  const NumberName* feature = find(feature_numbers, feature_name);
  if (feature == nullptr) return unknown(raw_features, feature_name, feature_numbers);
  auto shape = row_shape_of(config, 0, label->number != Number::none);
  if (!shape) return shape.error();
  return std::unique_ptr<Decoder>(new RawDecoder(config, std::move(shape).value(), *label, *feature));
}

constexpr Key raw_keys[] = {
    {.name = raw_label,
     .type = KeyType::text,
     .text = "\"u8\"",
     .help = "type of the label before each row",
     .choices = "none | u8 | i32 | i64 | f32"},
    {.name = raw_features,
     .type = KeyType::text,
     .text = "\"u8\"",
     .help = "type of each feature",
     .choices = "u8 | i16 | f32"},
    {.name = "decode.raw.shape",
     .type = KeyType::integers,
     .text = "[1, 28, 28]",
     .help = "shape of one row",
     .least = 1,
     .most = 1e7},
    {.name = "decode.raw.scale",
     .type = KeyType::number,
     .text = "0.0127288",
     .help = "factor of each feature, in x * scale + shift"},
    {.name = "decode.raw.shift",
     .type = KeyType::number,
     .text = "-0.4242",
     .help = "added after scaling; the default normalizes MNIST (mean 0.1307, standard deviation 0.3081)"},
    {.name = "decode.raw.missing",
     .type = KeyType::numbers,
     .text = "[]",
     .help = "codes of missing values, in the units of the records (before scale and shift)"},
    {.name = "decode.raw.fill",
     .type = KeyType::text,
     .text = "\"drop\"",
     .help = "last | drop | a number: replacement of a missing value, before scale and shift; drop "
             "discards the row",
     .fits = is_fill_without_mean,
     .form = fill_form_without_mean,
     .or_number = true},
};

}  // namespace

extern const DecoderEntry decoder_raw;
const DecoderEntry decoder_raw{"raw", "contiguous little-endian rows, each a label and then the features",
                               make, raw_keys};

}  // namespace rivulet::stream
