#include <algorithm>
#include <charconv>

#include "stream/decoder/base.h"

namespace rivulet::stream {
namespace {

constexpr std::size_t missing_counted = 65;  // 64 features and one count for all others

}  // namespace

DecoderBase::DecoderBase(const DecodeConfig& config, RowShape shape)
    : shape_(std::move(shape)),
      columns_(shape_.columns()),
      max_record_bytes_(config.max_record_bytes),
      classes_(config.classes),
      class_names_(config.classes > 0 ? config.class_names : std::vector<std::string>{}),
      scale_(config.scale),
      shift_(config.shift),
      normalizes_(config.normalizes),
      codes_(config.missing),
      fill_(config.fill),
      decimal_(config.decimal),
      looks_closer_(!config.missing.empty()),
      missing_(std::min(columns_, missing_counted)) {
  if (fill_.kind == Fill::Kind::last) last_values_.emplace(columns_);
}

void DecoderBase::describe(std::string_view text, std::string_view value) noexcept {
  detail_size_ = 0;
  const auto put = [this](std::string_view piece) {
    const std::size_t n = std::min(piece.size(), detail_.size() - detail_size_);
    piece.copy(detail_.data() + detail_size_, n);
    detail_size_ += n;
  };
  put(text);
  if (value.empty()) return;
  put(": ");
  put(value.substr(0, 60));  // a value may be a megabyte of garbage
}

void DecoderBase::describe(DropReason reason, const Culprit& culprit) noexcept {
  constexpr std::size_t shown = 40;
  const auto numbered = culprit.column ? "column " + std::to_string(*culprit.column) : std::string();
  const bool named = !culprit.column || culprit.name != std::to_string(*culprit.column);
  std::string words = named ? "feature \"" + culprit.name.substr(0, shown) + "\"" : numbered;
  if (named && culprit.column) words += " (" + numbered + ")";
  const bool cut = culprit.token.size() > shown;
  const std::string token = ": " + culprit.token.substr(0, shown) + (cut ? "..." : "");
  if (reason == DropReason::wrong_type) words += token + " is not a number";
  if (reason == DropReason::nonfinite_value) words += token + " is not finite as a 32-bit float";
  if (reason == DropReason::missing_field)
    words += culprit.token.empty() ? " has no value" : token + " is not a value";
  if (culprit.byte) words += ", at byte " + std::to_string(*culprit.byte);
  describe(words);
}

void DecoderBase::begin(const Record& record) noexcept {
  done_ = false;
  detail_size_ = 0;
  number_label_.reset();
  text_label_ = {};
  whole_.reset();
  if (last_values_) last_values_->enter(record);
  if (record.tombstone) {
    describe("the record has no value");
    whole_ = DropReason::tombstone;
  } else if (record.value.size() > max_record_bytes_) {
    describe("the record is larger than decode.max_record_bytes");
    whole_ = DropReason::oversize;
  } else {
    whole_ = open_record(record.value);
  }
}

Decoded DecoderBase::next(RowSlot out) noexcept {
  if (done_) return end();
  if (whole_) {
    done_ = true;
    return drop(*whole_);
  }
  RIVULET_CHECK(out.features.size() == columns_ && out.targets.size() == shape_.targets,
                "the slot has the wrong shape");
  number_label_.reset();
  text_label_ = {};
  missing_in_row_ = 0;
  const Decoded step = next_row(out);
  done_ = step.kind == Decoded::Kind::end;
  return step.kind == Decoded::Kind::row ? whole_row(out, step) : step;
}

/// A row that consists only of fill values carries no information: most likely it is a row of a different
/// kind.
Decoded DecoderBase::whole_row(RowSlot out, Decoded step) noexcept {
  const auto is_unknown = [](float x) { return std::isnan(x); };
  if (missing_in_row_ == columns_ && std::ranges::all_of(out.features, is_unknown)) {
    describe("the row has no value for any feature");
    return drop(DropReason::missing_field);
  }
  if (last_values_) last_values_->row(out.features);
  return step;
}

std::optional<DropReason> DecoderBase::closer_into(float& out, double x, std::size_t column) noexcept {
  if (std::ranges::find(codes_, x) != codes_.end()) return nothing_into(out, column);
  if (!scale_into(out, x, column)) return DropReason::nonfinite_value;
  if (watch_) watch_->look(column, x, out);
  return std::nullopt;
}

std::optional<DropReason> DecoderBase::nothing_into(float& out, std::size_t column) noexcept {
  if (!missing_.empty()) ++missing_[std::min(column, missing_.size() - 1)];
  ++missing_in_row_;
  if (fill_.kind == Fill::Kind::drop) return DropReason::missing_field;
  if (fill_.kind == Fill::Kind::number)
    return scale_into(out, fill_.value, column) ? std::nullopt : std::optional(DropReason::nonfinite_value);
  out = last_values_ ? last_values_->of(column) : std::numeric_limits<float>::quiet_NaN();
  return normalizes_ || !std::isnan(out) ? std::nullopt : std::optional(DropReason::missing_field);
}

void DecoderBase::watch_narrowing(bool on) {
  constexpr std::size_t columns_watched_max = 65'536;
  watch_.reset();
  if (on && columns_ < columns_watched_max) {
    watch_.emplace(columns_);
    for (std::size_t i = 0; i < columns_; ++i) watch_->set_scale(i, of_column(scale_, i));
  }
  looks_closer_ = watch_ || !codes_.empty();
}

std::span<const Narrowing> DecoderBase::narrowing() const noexcept {
  return watch_ ? watch_->features() : std::span<const Narrowing>();
}

std::optional<double> DecoderBase::target_in(std::string_view text) const noexcept {
  return decimal_ == '.' ? parse_number(text) : parse_number(text, decimal_);
}

std::optional<double> DecoderBase::number_in(std::string_view text) const noexcept {
  if (const auto x = target_in(text)) return x;
  for (const char* yes : {"true", "True", "TRUE"})
    if (text == yes) return 1;
  for (const char* no : {"false", "False", "FALSE"})
    if (text == no) return 0;
  return std::nullopt;
}

std::string DecoderBase::label() const {
  if (!number_label_) return std::string(text_label_);
  std::array<char, 32> room{};
  return std::string(text_of(*number_label_, room));
}

std::optional<DropReason> DecoderBase::target_into(float& out, double x) noexcept {
  number_label_ = x;
  if (!std::isfinite(x)) {
    describe("the target is not a finite number");
    return DropReason::nonfinite_value;
  }
  if (classes_ == 0 && std::ranges::find(codes_, x) != codes_.end()) {
    std::array<char, 32> room{};
    describe("the target is a missing-value code", text_of(x, room));
    return DropReason::missing_field;
  }
  if (classes_ > 0 && (x < 0 || x >= classes_ || x != std::floor(x))) {
    std::array<char, 32> room{};
    describe("the label is not one of the classes", text_of(x, room));
    return DropReason::bad_label;
  }
  out = static_cast<float>(x);
  if (std::isfinite(out)) return std::nullopt;
  describe("the target is too large for a 32-bit float");
  return DropReason::nonfinite_value;
}

std::optional<DropReason> DecoderBase::class_into(float& out, std::string_view label) noexcept {
  text_label_ = label;
  if (const auto found = class_names_.find(label)) {
    out = static_cast<float>(*found);
    return std::nullopt;
  }
  describe("the label is not one of the configured classes", label);
  return DropReason::bad_label;
}

std::optional<DropReason> DecoderBase::unnamed_label(std::string_view label) noexcept {
  text_label_ = label;
  describe(classes_ > 0 ? "the label is not a number, and no list of classes is configured"
                        : "the target is not a number",
           label);
  return DropReason::wrong_type;
}

std::string_view text_of(double x, std::span<char, 32> room) noexcept {
  const auto end = std::to_chars(room.data(), room.data() + room.size(), x).ptr;
  return {room.data(), static_cast<std::size_t>(end - room.data())};
}

namespace {

/// Error message for a scale or shift of rows with `columns` features; empty if valid.
std::string unfit(const std::vector<double>& values, const std::string& key, std::size_t columns) {
  const bool finite = std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
  if (!finite) return "." + key + " must be a finite number";
  if (values.size() == 1 || values.size() == columns) return {};
  return "." + key + " has " + std::to_string(values.size()) +
         " values: it must be one value for all features, or a list of " + std::to_string(columns);
}

}  // namespace

Result<RowShape> row_shape_of(const DecodeConfig& config, std::size_t needs_columns, bool labelled) {
  const auto wrong = [](std::string message) { return Error{ErrorCode::invalid_config, std::move(message)}; };
  const std::string table = "decode." + config.format;
  RowShape shape{.shape = config.shape, .targets = labelled ? 1U : 0U};
  if (shape.shape.empty() && needs_columns > 0) shape.shape = {static_cast<std::int64_t>(needs_columns)};
  if (shape.shape.empty())
    return wrong(table + ".shape is missing: the shape of one row, such as [1, 28, 28]");
  std::int64_t product = 1;
  for (const auto dimension : shape.shape) {
    constexpr std::int64_t most = std::int64_t{1} << 28;
    if (dimension < 1 || dimension > most || product * dimension > most)
      return wrong(table + ".shape has a dimension of " + std::to_string(dimension) +
                   ": each must be at least 1, and their product at most 2^28");
    product *= dimension;
  }
  const auto columns = static_cast<std::size_t>(product);
  for (const auto& problem : {unfit(config.scale, "scale", columns), unfit(config.shift, "shift", columns)})
    if (!problem.empty()) return wrong(table + problem);
  if (config.classes > 0 && !labelled)
    return wrong(table + (config.format == "raw" ? ".label is \"none\"" : ".target is missing") +
                 ", but a model with classes needs labels");
  const std::size_t named = config.class_names.size();
  if (config.classes > 0 && named > 0 && named != config.classes)
    return wrong(table + ".classes has " + std::to_string(named) + " names, but model.classes is " +
                 std::to_string(config.classes));
  return shape;
}

std::optional<double> parse_number(std::string_view text, char decimal) noexcept {
  std::array<char, 64> point{};
  if (text.size() > point.size() || text.find('.') != std::string_view::npos) return std::nullopt;
  std::ranges::replace_copy(text, point.begin(), decimal, '.');
  return parse_number(std::string_view(point.data(), text.size()));
}

std::optional<double> parse_number(std::string_view text) noexcept {
  const std::string_view whole = text;
  if (text.starts_with('+')) text.remove_prefix(1);
  if (whole.size() != text.size() && text.starts_with('-')) return std::nullopt;
  double x = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (end != text.data() + text.size() || code == std::errc::invalid_argument) return std::nullopt;
  if (code != std::errc::result_out_of_range) return x;
  // from_chars does not report the direction: a negative exponent or a leading zero means underflow.
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  const auto exponent = digits.find_first_of("eE");
  const bool small = exponent == std::string_view::npos ? digits.starts_with('0') || digits.starts_with('.')
                                                        : digits.substr(exponent + 1).starts_with('-');
  if (small) return 0.0;
  return text.starts_with('-') ? -std::numeric_limits<double>::infinity()
                               : std::numeric_limits<double>::infinity();
}

}  // namespace rivulet::stream
