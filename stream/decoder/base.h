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
#include "stream/decoder/last_values.h"
#include "stream/decoder/narrowing_watch.h"

namespace rivulet::stream {

/// What every decoder does alike: tombstones and oversize records, x * scale + shift, what a missing value
/// becomes, the label check, and the words for the last drop. A format implements open_record() and
/// next_row().
class DecoderBase : public Decoder {
 public:
  DecoderBase(const DecodeConfig& config, RowShape shape);
  [[nodiscard]] const RowShape& shape() const noexcept final { return shape_; }
  [[nodiscard]] std::string_view detail() const noexcept final { return {detail_.data(), detail_size_}; }
  [[nodiscard]] std::string label() const final;
  void begin(const Record& record) noexcept final;
  Decoded next(RowSlot out) noexcept final;
  [[nodiscard]] std::span<const std::uint64_t> missing() const noexcept final { return missing_; }
  void watch_narrowing(bool on) final;
  [[nodiscard]] std::span<const Narrowing> narrowing() const noexcept final;

 protected:
  /// Looks at a record that has a value of allowed size. Something returned drops the record as one row.
  virtual std::optional<DropReason> open_record(std::span<const std::byte> value) noexcept = 0;
  virtual Decoded next_row(RowSlot out) noexcept = 0;

  /// Writes `text` (and, if not empty, ": value") where detail() finds it; cuts what is too long.
  void describe(std::string_view text, std::string_view value = {}) noexcept;
  /// A feature in the words of a drop.
  struct Culprit {
    std::string name;
    std::optional<std::size_t> column;  ///< of the record, if it has columns
    std::string token;                  ///< as the record has it; empty: nothing is there
    std::optional<std::size_t> byte;    ///< of the record, from 0
  };
  /// `feature "temp" (column 3): "n/a" is not a number, at byte 17`. What is wrong follows from the reason.
  void describe(DropReason reason, const Culprit& culprit) noexcept;
  Decoded drop(DropReason reason) noexcept { return {.kind = Decoded::Kind::dropped, .reason = reason}; }
  static Decoded row() noexcept { return {.kind = Decoded::Kind::row}; }
  static Decoded end() noexcept { return {.kind = Decoded::Kind::end}; }

  /// The feature of a column after x * scale + shift, or what a missing value becomes if x is a code for
  /// that. Something returned drops the row; the caller describes it.
  [[nodiscard]] std::optional<DropReason> feature_into(float& out, double x, std::size_t column) noexcept {
    if (looks_closer_) [[unlikely]]
      return closer_into(out, x, column);
    return scale_into(out, x, column) ? std::nullopt : std::optional(DropReason::nonfinite_value);
  }
  /// What the feature becomes where the record has no value for it. As feature_into().
  [[nodiscard]] std::optional<DropReason> nothing_into(float& out, std::size_t column) noexcept;
  /// A number as texts have it: with the configured decimal sign, or true (1) and false (0).
  [[nodiscard]] std::optional<double> number_in(std::string_view text) const noexcept;
  /// Without true and false, which are labels of their own.
  [[nodiscard]] std::optional<double> target_in(std::string_view text) const noexcept;
  /// A target: a class index if there are classes, else a finite number that is not a code. Describes what is
  /// wrong.
  std::optional<DropReason> target_into(float& out, double x) noexcept;
  /// A label of the configured list, whose bytes live until the next row is read. Describes what is wrong.
  std::optional<DropReason> class_into(float& out, std::string_view label) noexcept;
  /// A label that is not a number where there is no list: why its row is dropped. Bytes as above.
  std::optional<DropReason> unnamed_label(std::string_view label) noexcept;
  /// Labels are looked up in a list: class_into(), not target_into().
  [[nodiscard]] bool has_class_names() const noexcept { return !class_names_.empty(); }

  /// Of formats that have one for all features.
  [[nodiscard]] float scale() const noexcept { return static_cast<float>(scale_.front()); }
  [[nodiscard]] float shift() const noexcept { return static_cast<float>(shift_.front()); }
  /// Some values are codes: each must go through feature_into().
  [[nodiscard]] bool has_codes() const noexcept { return !codes_.empty(); }
  /// Of a format in which nothing can be missing.
  void has_every_value() { missing_.clear(); }
  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
  [[nodiscard]] bool labelled() const noexcept { return shape_.targets > 0; }

 private:
  static double of_column(const std::vector<double>& values, std::size_t column) noexcept {
    return values.size() == 1 ? values.front() : values[column];
  }
  /// In double, so that a shift saves what 32 bits could not hold; false if the result is not finite.
  [[nodiscard]] bool scale_into(float& out, double x, std::size_t column) const noexcept {
    out = static_cast<float>(x * of_column(scale_, column) + of_column(shift_, column));
    return std::isfinite(out);
  }
  std::optional<DropReason> closer_into(float& out, double x, std::size_t column) noexcept;
  /// A row that was read whole: none of its features may have been there.
  Decoded whole_row(RowSlot out, Decoded step) noexcept;

  // constant
  RowShape shape_;
  std::size_t columns_;
  std::size_t max_record_bytes_;
  std::uint32_t classes_;
  ClassNames class_names_;
  std::vector<double> scale_;
  std::vector<double> shift_;
  bool normalizes_;
  std::vector<double> codes_;
  Fill fill_;
  char decimal_;
  // of all records so far
  bool looks_closer_;
  std::vector<std::uint64_t> missing_;
  std::optional<LastValues> last_values_;
  std::optional<NarrowingWatch> watch_;
  // of the current record
  std::size_t missing_in_row_ = 0;
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
/// The same with another decimal sign, in place of the point.
std::optional<double> parse_number(std::string_view text, char decimal) noexcept;

}  // namespace rivulet::stream
