#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "stream/decoder.h"
#include "stream/decoder/class_names.h"

namespace rivulet::stream {

/// What every decoder does alike: tombstones and oversize records, x * scale + shift, the label check, and
/// the words for the last drop. A format implements open_record() and next_row().
class DecoderBase : public Decoder {
 public:
  DecoderBase(const DecodeConfig& config, RowShape shape);
  [[nodiscard]] const RowShape& shape() const noexcept final { return shape_; }
  [[nodiscard]] std::string_view detail() const noexcept final { return {detail_.data(), detail_size_}; }
  [[nodiscard]] std::string label() const final;
  void begin(const Record& record) noexcept final;
  Decoded next(RowSlot out) noexcept final;

 protected:
  /// Looks at a record that has a value of allowed size. Something returned drops the record as one row.
  virtual std::optional<DropReason> open_record(std::span<const std::byte> value) noexcept = 0;
  virtual Decoded next_row(RowSlot out) noexcept = 0;

  /// Writes `text` (and, if not empty, ": value") where detail() finds it; cuts what is too long.
  void describe(std::string_view text, std::string_view value = {}) noexcept;
  Decoded drop(DropReason reason) noexcept { return {.kind = Decoded::Kind::dropped, .reason = reason}; }
  static Decoded row() noexcept { return {.kind = Decoded::Kind::row}; }
  static Decoded end() noexcept { return {.kind = Decoded::Kind::end}; }

  /// The feature of a column after x * scale + shift; false if the number is not finite before or after.
  [[nodiscard]] bool scale_into(float& out, double x, std::size_t column) const noexcept {
    const auto narrow = static_cast<float>(x);
    out = narrow * of_column(scale_, column) + of_column(shift_, column);
    return std::isfinite(narrow) && std::isfinite(out);
  }
  /// A target: a class index if there are classes, else a finite number. Describes what is wrong.
  std::optional<DropReason> target_into(float& out, double x) noexcept;
  /// A label of the configured list, whose bytes live until the next row is read. Describes what is wrong.
  std::optional<DropReason> class_into(float& out, std::string_view label) noexcept;
  /// A label that is no number where there is no list: why its row is dropped. Bytes as above.
  std::optional<DropReason> unnamed_label(std::string_view label) noexcept;
  /// Labels are looked up in a list: class_into(), not target_into().
  [[nodiscard]] bool has_class_names() const noexcept { return !class_names_.empty(); }

  /// Of formats that have one for all features.
  [[nodiscard]] float scale() const noexcept { return scale_.front(); }
  [[nodiscard]] float shift() const noexcept { return shift_.front(); }
  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
  [[nodiscard]] bool labelled() const noexcept { return shape_.targets > 0; }

 private:
  static float of_column(const std::vector<float>& values, std::size_t column) noexcept {
    return values.size() == 1 ? values.front() : values[column];
  }

  // constant
  RowShape shape_;
  std::size_t columns_;
  std::size_t max_record_bytes_;
  std::uint32_t classes_;
  ClassNames class_names_;
  std::vector<float> scale_;
  std::vector<float> shift_;
  // of the current record
  std::optional<DropReason> whole_;  ///< the record drops as one row
  bool done_ = true;
  std::optional<double> number_label_;
  std::string_view text_label_;
  std::array<char, 160> detail_{};
  std::size_t detail_size_ = 0;
};

/// Checks the part of the configuration that all formats share; `needs_columns` = count of configured
/// features (0 if the format has no list). Fills an empty shape with {needs_columns}. Errors: invalid_config.
Result<RowShape> row_shape_of(const DecodeConfig& config, std::size_t needs_columns, bool labelled);

/// The shortest text of a number, in `room`: 1, 0.5, 1e+30.
std::string_view text_of(double x, std::span<char, 32> room) noexcept;

/// A number as text: optional sign, decimals, exponent, nan, inf; the whole of `text`. An overflow reads as
/// infinity, an underflow as zero, so that both are judged like any other number. nullopt: not a number.
std::optional<double> parse_number(std::string_view text) noexcept;

}  // namespace rivulet::stream
