#include <algorithm>
#include <charconv>

#include "stream/decoder/base.h"

namespace rivulet::stream {

DecoderBase::DecoderBase(const DecodeConfig& config, RowShape shape)
    : shape_(std::move(shape)),
      columns_(shape_.columns()),
      max_record_bytes_(config.max_record_bytes),
      classes_(config.classes),
      class_names_(config.classes > 0 ? config.class_names : std::vector<std::string>{}),
      scale_(config.scale),
      shift_(config.shift) {}

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
  put(value.substr(0, 60));  // a value can be a megabyte of garbage
}

void DecoderBase::begin(const Record& record) noexcept {
  done_ = false;
  detail_size_ = 0;
  number_label_.reset();
  text_label_ = {};
  whole_.reset();
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
                "a slot of another shape");
  number_label_.reset();
  text_label_ = {};
  const Decoded step = next_row(out);
  done_ = step.kind == Decoded::Kind::end;
  return step;
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

/// What is wrong with a scale or shift for rows of so many features, or empty.
std::string unfit(const std::vector<float>& values, const std::string& key, std::size_t columns) {
  const bool finite = std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
  if (!finite) return "." + key + " must be a finite number";
  if (values.size() == 1 || values.size() == columns) return {};
  return "." + key + " has " + std::to_string(values.size()) +
         " numbers: it must be one number for all features, or a list with one for each of the " +
         std::to_string(columns);
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
                   ": every one must be at least 1 and the product at most 2^28");
    product *= dimension;
  }
  const auto columns = static_cast<std::size_t>(product);
  for (const auto& complaint : {unfit(config.scale, "scale", columns), unfit(config.shift, "shift", columns)})
    if (!complaint.empty()) return wrong(table + complaint);
  if (config.classes > 0 && !labelled)
    return wrong(table + (config.format == "raw" ? ".label is \"none\"" : ".target is missing") +
                 ", but a model with classes needs labels");
  const std::size_t named = config.class_names.size();
  if (config.classes > 0 && named > 0 && named != config.classes)
    return wrong(table + ".classes has " + std::to_string(named) + " names, but model.classes is " +
                 std::to_string(config.classes));
  return shape;
}

std::optional<double> parse_number(std::string_view text) noexcept {
  const std::string_view whole = text;
  if (text.starts_with('+')) text.remove_prefix(1);
  if (whole.size() != text.size() && text.starts_with('-')) return std::nullopt;
  double x = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (end != text.data() + text.size() || code == std::errc::invalid_argument) return std::nullopt;
  if (code != std::errc::result_out_of_range) return x;
  // from_chars does not say which end it fell off: a negative exponent or a leading zero means too small.
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  const auto exponent = digits.find_first_of("eE");
  const bool small = exponent == std::string_view::npos ? digits.starts_with('0') || digits.starts_with('.')
                                                        : digits.substr(exponent + 1).starts_with('-');
  if (small) return 0.0;
  return text.starts_with('-') ? -std::numeric_limits<double>::infinity()
                               : std::numeric_limits<double>::infinity();
}

}  // namespace rivulet::stream
