#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "stream/decoder/base.h"
#include "stream/decoder/json_fields.h"
#include "stream/decoder/json_keys.h"
#include "stream/decoder/json_lines.h"
#include "stream/decoder/json_numbers.h"
#include "stream/decoder/json_place.h"
#include "stream/text_body.h"

namespace rivulet::stream {
namespace {

namespace dom = simdjson::dom;

/// Decodes an object, an array of objects, or lines of objects. An object or array is parsed once. Lines are
/// parsed one at a time, so that a malformed line affects no other line.
class JsonDecoder final : public DecoderBase {
 public:
  JsonDecoder(const DecodeConfig& config, RowShape shape, JsonFields fields)
      : DecoderBase(config, std::move(shape)),
        features_(std::move(fields.features)),
        target_(std::move(fields.target)),
        kind_(std::move(fields.kind)),
        kind_wanted_(std::move(fields.kind_wanted)),
        widths_known_(total_width(features_) == columns()) {}

  [[nodiscard]] std::string feature(std::size_t column) const override {
    // If a path may yield any number of values, columns cannot be mapped to names.
    if (!widths_known_) return {};
    auto path = features_.begin();
    for (; *path->width() <= column; ++path) column -= *path->width();
    return path->name_of(column);
  }
  /// If a single list provides all features, a column is named by its index in that list.
  [[nodiscard]] std::string column_name(std::size_t column) const override {
    if (widths_known_ || features_.size() > 1) return Decoder::column_name(column);
    std::string_view list = features_.front().text;
    if (list.ends_with("[:]")) list.remove_suffix(3);
    return std::string(list) + "[" + std::to_string(column) + "]";
  }

 private:
  enum class Mode : std::uint8_t { one_object, array, lines };

  std::optional<DropReason> open_record(std::span<const std::byte> value) noexcept override {
    const TextBody body = text_body(value, TextKind::json);
    if (body.binary) {
      describe(words_for_binary(*body.schema));
      return DropReason::malformed;
    }
    buffer_.resize(std::max(buffer_.size(), value.size() + simdjson::SIMDJSON_PADDING));
    std::copy_n(reinterpret_cast<const char*>(value.data()), value.size(), buffer_.data());
    // Bytes left over from a longer record must not look like a part of this one.
    std::fill_n(buffer_.data() + value.size(), simdjson::SIMDJSON_PADDING, '\0');
    const std::string_view text = trim_json({buffer_.data() + body.begin, value.size() - body.begin});
    if (text.find('\n') != std::string_view::npos && starts_with_a_row(text)) return open_lines(text);
    const auto wrong = open_document(text);
    if (!wrong) return wrong;
    return has_object_line(text) ? open_lines(text) : wrong;
  }

  std::optional<DropReason> open_lines(std::string_view text) noexcept {
    mode_ = Mode::lines;
    rest_ = text;
    return std::nullopt;
  }

  bool starts_with_a_row(std::string_view text) noexcept {
    const std::string_view line = take_line(text);
    return looks_like_object(line) && !parse(line);
  }

  std::optional<DropReason> open_document(std::string_view text) noexcept {
    if (const auto wrong = parse(text)) return wrong;
    mode_ = root_.is_array() ? Mode::array : Mode::one_object;
    pending_ = true;
    if (mode_ == Mode::one_object) return std::nullopt;
    const auto array = root_.get_array().value_unsafe();
    at_ = array.begin();
    end_ = array.end();
    if (at_ != end_) return std::nullopt;
    describe("the array contains no row");
    return DropReason::malformed;
  }

  /// Parses into root_. `text` must lie in buffer_, which has padding after it.
  std::optional<DropReason> parse(std::string_view text) noexcept {
    parsed_ = text;
    element_.reset();
    auto error = parser_.parse(text.data(), text.size(), false).get(root_);
    if (error == simdjson::NUMBER_ERROR) error = parser_.parse(with_fractions(text)).get(root_);
    if (error == simdjson::SUCCESS) return std::nullopt;
    if (error == simdjson::NUMBER_ERROR && has_overflow(text)) {
      describe("a number is too large for a double");
      return DropReason::nonfinite_value;
    }
    describe(simdjson::error_message(error), text);
    return DropReason::malformed;
  }

  Decoded next_row(RowSlot out) noexcept override {
    std::optional<DropReason> wrong;
    if (mode_ == Mode::lines) {
      const std::string_view line = take_line(rest_);
      if (line.empty()) return end();
      wrong = parse(line);
      if (!wrong) wrong = read_object(root_, out);
    } else if (mode_ == Mode::array) {
      if (at_ == end_) return end();
      element_ = element_ ? *element_ + 1 : 0;
      wrong = read_object(*at_, out);
      ++at_;
    } else {
      if (!pending_) return end();
      pending_ = false;
      wrong = read_object(root_, out);
    }
    return wrong ? drop(*wrong) : row();
  }

  std::optional<DropReason> read_object(dom::element object, RowSlot out) noexcept {
    if (!object.is_object()) {
      describe("a row must be an object");
      return DropReason::malformed;
    }
    if (kind_ && !is_meant(object)) return DropReason::filtered;
    filled_ = 0;
    for (const auto& path : features_) {
      current_ = &path;
      first_of_path_ = filled_;
      if (const auto wrong = walk(object, 0, out.features)) return wrong;
    }
    if (filled_ != out.features.size()) {
      describe("the features have fewer values than the shape");
      return DropReason::wrong_shape;
    }
    if (!target_) return std::nullopt;
    current_ = &*target_;
    return read_target(object, out);
  }

  bool is_meant(dom::element at) noexcept {
    bool there = true;
    for (const auto& step : kind_->steps) there = there && enter(at, step) == Entered::there;
    const auto label = there ? label_text(at) : std::nullopt;
    if (label && *label == kind_wanted_) return true;
    describe("decode.json.where does not select this row");
    return false;
  }

  std::optional<DropReason> read_target(dom::element object, RowSlot out) noexcept {
    dom::element at = object;
    for (const auto& step : target_->steps) {
      const Entered entered = enter(at, step);
      if (entered == Entered::no_list) return not_an_array();
      if (entered == Entered::there) continue;
      describe("the row has no field", target_->text);
      return DropReason::missing_field;
    }
    double x = 0;
    const bool number = at.get(x) == simdjson::SUCCESS;
    if (number && !has_class_names()) return target_into(out.targets[0], x);
    const auto label = label_text(at);
    if (!label) {
      describe("the target is not a number", target_->text);
      return DropReason::wrong_type;
    }
    const auto in_text = has_class_names() || at.is_bool() ? std::nullopt : target_in(*label);
    if (in_text) return target_into(out.targets[0], *in_text);
    return has_class_names() ? class_into(out.targets[0], *label) : unnamed_label(*label);
  }

  template <class Whole>
  std::string_view text_of_whole(Whole number) noexcept {
    const auto end = std::to_chars(label_.data(), label_.data() + label_.size(), number).ptr;
    return {label_.data(), static_cast<std::size_t>(end - label_.data())};
  }

  /// Returns text, true and false unchanged, a number in its shortest form (1.0 is 1); nullopt for other
  /// types.
  std::optional<std::string_view> label_text(dom::element at) noexcept {
    std::string_view text;
    if (at.get(text) == simdjson::SUCCESS) return text;
    if (bool yes = false; at.get(yes) == simdjson::SUCCESS) return yes ? "true" : "false";
    if (std::int64_t whole = 0; at.get(whole) == simdjson::SUCCESS) return text_of_whole(whole);
    if (std::uint64_t large = 0; at.get(large) == simdjson::SUCCESS) return text_of_whole(large);
    if (double x = 0; at.get(x) == simdjson::SUCCESS) return text_of(x, label_);
    return std::nullopt;
  }

  /// Follows the current path from `step` on; a slice fans out. Appends every value that it reaches.
  std::optional<DropReason> walk(dom::element at, std::size_t step, std::span<float> out,
                                 bool sliced = false) noexcept {
    for (; step < current_->steps.size(); ++step) {
      if (at.is_null()) return nothing(step, out);
      if (current_->steps[step].kind == JsonStep::Kind::slice) return fan_out(at, step, out);
      const Entered entered = enter(at, current_->steps[step]);
      if (entered == Entered::no_list) return not_an_array();
      if (entered == Entered::nothing) return nothing(step, out);
    }
    if (!nested_as_shape(at, sliced)) return wrong_nesting();
    return append(at, out);
  }

  /// A flat list may have any length. Nested lists, and a list where a slice expects values, must match the
  /// last dimensions of the shape: [[1], [2], [3]] is not three values. Enclosing lists of one element are
  /// ignored.
  [[nodiscard]] bool nested_as_shape(dom::element at, bool sliced) const noexcept {
    dom::array array;
    if (at.get(array) != simdjson::SUCCESS) return true;
    std::size_t rank = rank_of(at);
    for (; !sliced && rank > 1 && array.size() == 1; --rank) {
      at = *array.begin();
      if (at.get(array) != simdjson::SUCCESS) return false;
    }
    if (!sliced && rank == 1) return has_lengths(at, {});
    const auto& shape = this->shape().shape;
    return rank <= shape.size() && has_lengths(at, std::span(shape).last(rank));
  }

  /// Nesting depth of the first value.
  static std::size_t rank_of(dom::element at) noexcept {
    std::size_t rank = 0;
    for (dom::array array; at.get(array) == simdjson::SUCCESS; at = *array.begin()) {
      ++rank;
      if (array.size() == 0) break;
    }
    return rank;
  }

  /// Whether `at` consists of nested lists of these lengths, with no list below the last. Without lengths,
  /// any flat list fits.
  static bool has_lengths(dom::element at, std::span<const std::int64_t> lengths) noexcept {
    dom::array array;
    if (at.get(array) != simdjson::SUCCESS) return false;
    if (!lengths.empty() && array.size() != static_cast<std::size_t>(lengths.front())) return false;
    for (const auto element : array) {
      if (lengths.size() > 1 ? !has_lengths(element, lengths.subspan(1)) : element.is_array()) return false;
    }
    return true;
  }

  std::optional<DropReason> wrong_nesting() noexcept {
    describe("nested lists do not match decode.json.shape", current_->text);
    return DropReason::wrong_shape;
  }

  std::optional<DropReason> fan_out(dom::element at, std::size_t step, std::span<float> out) noexcept {
    const auto [first, last] = std::pair{current_->steps[step].first, current_->steps[step].last};
    dom::array array;
    if (at.get(array) != simdjson::SUCCESS) return not_an_array();
    std::size_t index = 0;
    for (const auto element : array) {
      if (index >= last) break;
      if (index >= first)
        if (const auto wrong = walk(element, step + 1, out, true)) return wrong;
      ++index;
    }
    if (last == open_end || index >= last) return std::nullopt;
    describe("the array is shorter than its slice", current_->text);
    return DropReason::wrong_shape;
  }

  enum class Entered : std::uint8_t { there, nothing, no_list };
  /// Descends by one key or index.
  static Entered enter(dom::element& at, const JsonStep& step) noexcept {
    if (step.kind == JsonStep::Kind::key)
      return at.at_key(step.key).get(at) == simdjson::SUCCESS ? Entered::there : Entered::nothing;
    if (!at.is_array()) return at.is_null() ? Entered::nothing : Entered::no_list;
    return at.at(step.first).get(at) == simdjson::SUCCESS ? Entered::there : Entered::nothing;
  }

  /// Fills all values that the steps from `step` on would have yielded.
  std::optional<DropReason> nothing(std::size_t step, std::span<float> out) noexcept {
    std::size_t width = width_from(*current_, step);
    // A single list without a fixed width fills the rest of the row.
    if (!widths_known_ && features_.size() == 1) width = out.size() - filled_;
    if (!widths_known_ && features_.size() > 1) return refused(DropReason::missing_field);
    for (std::size_t i = 0; i < width && filled_ < out.size(); ++i) {
      if (const auto wrong = nothing_into(out[filled_], filled_)) return refused(*wrong);
      ++filled_;
    }
    return std::nullopt;
  }

  /// Appends a number, or an array of numbers of any depth, row-major.
  std::optional<DropReason> append(dom::element at, std::span<float> out) noexcept {
    dom::array array;
    if (at.get(array) == simdjson::SUCCESS) {
      for (const auto element : array)
        if (const auto wrong = append(element, out)) return wrong;
      return std::nullopt;
    }
    if (filled_ == out.size()) {
      describe(
          "the features have more values than the shape: select a part of a list, like current[0:3], or set "
          "the "
          "shape",
          current_->text);
      return DropReason::wrong_shape;
    }
    double x = 0;
    std::optional<DropReason> wrong;
    if (at.get(x) == simdjson::SUCCESS) [[likely]]
      wrong = feature_into(out[filled_], x, filled_);
    else
      wrong = other_into(at, out[filled_], filled_);
    if (wrong) return refused(*wrong);
    ++filled_;
    return std::nullopt;
  }

  /// Writes a value that is not a number: true and false, a number in a text, null and empty text.
  std::optional<DropReason> other_into(dom::element at, float& out, std::size_t column) noexcept {
    if (at.is_null()) return nothing_into(out, column);
    if (bool yes = false; at.get(yes) == simdjson::SUCCESS) return feature_into(out, yes ? 1 : 0, column);
    std::string_view text;
    if (at.get(text) != simdjson::SUCCESS) return DropReason::wrong_type;
    text = trim_json(text);
    if (text.empty()) return nothing_into(out, column);
    const auto x = number_in(text);
    return x ? feature_into(out, *x, column) : std::optional(DropReason::wrong_type);
  }

  /// Describes the drop at feature `filled_`, with its text in the record.
  std::optional<DropReason> refused(DropReason reason) noexcept {
    const std::size_t place = filled_ - first_of_path_;
    Culprit culprit{.name = widths_known_ ? current_->name_of(place) : current_->text};
    auto path = parse_json_path(culprit.name).value();
    if (!widths_known_) path.steps.push_back({.kind = JsonStep::Kind::index, .first = place});
    if (element_) path.steps.insert(path.steps.begin(), {.kind = JsonStep::Kind::index, .first = *element_});
    if (const auto value = value_in(parsed_, path.steps)) {
      culprit.token = value->substr(0, 60);
      culprit.byte = static_cast<std::size_t>(value->data() - buffer_.data());
    }
    describe(reason, culprit);
    return reason;
  }

  std::optional<DropReason> not_an_array() noexcept {
    describe("the value is not an array", current_->text);
    return DropReason::wrong_type;
  }

  // constant
  std::vector<JsonPath> features_;
  std::optional<JsonPath> target_;
  std::optional<JsonPath> kind_;
  std::string kind_wanted_;
  bool widths_known_;
  // current record
  dom::parser parser_;
  std::vector<char> buffer_;
  Mode mode_ = Mode::one_object;
  dom::element root_;
  dom::array::iterator at_;
  dom::array::iterator end_;
  bool pending_ = false;
  std::string_view rest_;
  std::string_view parsed_;             ///< text that root_ was parsed from; in buffer_
  std::optional<std::size_t> element_;  ///< index of the row in an array
  const JsonPath* current_ = nullptr;
  std::size_t first_of_path_ = 0;
  std::size_t filled_ = 0;
  std::array<char, 32> label_{};
};

Result<std::unique_ptr<Decoder>> make(const DecodeConfig& config) {
  auto fields = json_fields_of(config);
  if (!fields) return fields.error();
  const std::size_t width = total_width(fields.value().features);
  if (width == 0 && config.shape.empty())
    return Error{ErrorCode::invalid_config,
                 "decode.json.shape is missing: a path with an open-ended slice, like a[2:], needs it"};
  auto shape = row_shape_of(config, width, fields.value().target.has_value());
  if (!shape) return shape.error();
  return std::unique_ptr<Decoder>(
      new JsonDecoder(config, std::move(shape).value(), std::move(fields).value()));
}

}  // namespace

extern const DecoderEntry decoder_json;
const DecoderEntry decoder_json{"json", "an object, an array of objects, or JSON lines; features by path",
                                make, json_keys};

}  // namespace rivulet::stream
