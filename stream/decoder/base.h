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

/// Behaviour common to all decoders: tombstones and oversize records, x * scale + shift, fills for missing
/// values, the label check, and the description of the last drop. A format implements open_record() and
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
  /// Opens a record whose value has an allowed size. A returned reason drops the record as one row.
  virtual std::optional<DropReason> open_record(std::span<const std::byte> value) noexcept = 0;
  virtual Decoded next_row(RowSlot out) noexcept = 0;

  /// Writes `text` (and, if not empty, ": value") for detail(); truncates long text.
  void describe(std::string_view text, std::string_view value = {}) noexcept;
  /// The feature that caused a drop, for its description.
  struct Culprit {
    std::string name;
    std::optional<std::size_t> column;  ///< of the record, if it has columns
    std::string token;                  ///< as in the record; empty if it has no value
    std::optional<std::size_t> byte;    ///< position in the record, from 0
  };
  /// Writes e.g. `feature "temp" (column 3): "n/a" is not a number, at byte 17`. The reason selects the text.
  void describe(DropReason reason, const Culprit& culprit) noexcept;
  Decoded drop(DropReason reason) noexcept { return {.kind = Decoded::Kind::dropped, .reason = reason}; }
  static Decoded row() noexcept { return {.kind = Decoded::Kind::row}; }
  static Decoded end() noexcept { return {.kind = Decoded::Kind::end}; }

  /// Writes x * scale + shift, or the fill value if x is a missing-value code. A returned reason drops the
  /// row; the caller describes it.
  [[nodiscard]] std::optional<DropReason> feature_into(float& out, double x, std::size_t column) noexcept {
    if (looks_closer_) [[unlikely]]
      return closer_into(out, x, column);
    return scale_into(out, x, column) ? std::nullopt : std::optional(DropReason::nonfinite_value);
  }
  /// Writes the fill value of a feature that the record lacks. Return value as for feature_into().
  [[nodiscard]] std::optional<DropReason> nothing_into(float& out, std::size_t column) noexcept;
  /// Parses a number in a text: with the configured decimal separator, or true (1) and false (0).
  [[nodiscard]] std::optional<double> number_in(std::string_view text) const noexcept;
  /// As number_in() without true and false, which can be labels.
  [[nodiscard]] std::optional<double> target_in(std::string_view text) const noexcept;
  /// Writes a target: a class index if there are classes, else a finite number that is not a missing-value
  /// code. Describes the fault.
  std::optional<DropReason> target_into(float& out, double x) noexcept;
  /// Writes the class of a text label, whose bytes must live until the next row is read. Describes errors.
  std::optional<DropReason> class_into(float& out, std::string_view label) noexcept;
  /// Drop reason of a text label without a configured list of classes. Lifetime as for class_into().
  std::optional<DropReason> unnamed_label(std::string_view label) noexcept;
  /// Whether labels are names from a list. If so, call class_into() instead of target_into().
  [[nodiscard]] bool has_class_names() const noexcept { return !class_names_.empty(); }

  /// For formats with a single scale and shift for all features.
  [[nodiscard]] float scale() const noexcept { return static_cast<float>(scale_.front()); }
  [[nodiscard]] float shift() const noexcept { return static_cast<float>(shift_.front()); }
  /// Whether there are missing-value codes. If so, every value must go through feature_into().
  [[nodiscard]] bool has_codes() const noexcept { return !codes_.empty(); }
  /// For formats in which no value can be missing.
  void has_every_value() { missing_.clear(); }
  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
  [[nodiscard]] bool labelled() const noexcept { return shape_.targets > 0; }

 private:
  static double of_column(const std::vector<double>& values, std::size_t column) noexcept {
    return values.size() == 1 ? values.front() : values[column];
  }
  /// Computes in double, so that `shift` removes an offset before rounding. Returns false if not finite.
  [[nodiscard]] bool scale_into(float& out, double x, std::size_t column) const noexcept {
    out = static_cast<float>(x * of_column(scale_, column) + of_column(shift_, column));
    return std::isfinite(out);
  }
  std::optional<DropReason> closer_into(float& out, double x, std::size_t column) noexcept;
  /// Finishes a row that was read completely. Drops it if all its features are missing.
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
  // over all records so far
  bool looks_closer_;
  std::vector<std::uint64_t> missing_;
  std::optional<LastValues> last_values_;
  std::optional<NarrowingWatch> watch_;
  // current record
  std::size_t missing_in_row_ = 0;
  std::optional<DropReason> whole_;  ///< reason that drops the whole record as one row
  bool done_ = true;
  std::optional<double> number_label_;
  std::string_view text_label_;
  std::array<char, 160> detail_{};
  std::size_t detail_size_ = 0;
};

/// Checks the configuration that all formats share; `needs_columns` = number of configured features (0 if the
/// format has no list). Fills an empty shape with {needs_columns}. Errors: invalid_config.
Result<RowShape> row_shape_of(const DecodeConfig& config, std::size_t needs_columns, bool labelled);

/// The shortest text of a number, written to `room`: 1, 0.5, 1e+30.
std::string_view text_of(double x, std::span<char, 32> room) noexcept;

/// Parses all of `text` as a number: optional sign, decimals, exponent, nan, inf. An overflow gives infinity,
/// an underflow zero, so the usual checks apply to both. Returns nullopt for other text.
std::optional<double> parse_number(std::string_view text) noexcept;
/// As above, with a different decimal separator instead of the point.
std::optional<double> parse_number(std::string_view text, char decimal) noexcept;

}  // namespace rivulet::stream
