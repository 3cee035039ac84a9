#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "stream/decoder/base.h"
#include "stream/decoder/json_numbers.h"
#include "stream/decoder/json_path.h"

namespace rivulet::stream {
namespace {

namespace dom = simdjson::dom;

constexpr bool blank(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

bool looks_like_object(std::string_view line) noexcept {
  return line.size() >= 2 && line.front() == '{' && line.back() == '}';
}

/// The next line that is not blank, taken off `rest`; empty at the end.
std::string_view take_line(std::string_view& rest) noexcept {
  while (!rest.empty()) {
    const std::size_t line_end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trim(rest.substr(0, line_end));
    rest.remove_prefix(std::min(line_end + 1, rest.size()));
    if (!line.empty()) return line;
  }
  return {};
}

/// Count of numbers the list yields; 0 if a path leaves it open.
std::size_t total_width(const std::vector<JsonPath>& paths) {
  std::size_t total = 0;
  for (const auto& path : paths) {
    const auto width = path.width();
    if (!width) return 0;
    total += *width;
  }
  return total;
}

/// An object, an array of objects, or lines of objects. A document (the first two) is parsed once; of lines
/// each is parsed when its turn comes, so that a bad line spoils only itself.
class JsonDecoder final : public DecoderBase {
 public:
  JsonDecoder(const DecodeConfig& config, RowShape shape, std::vector<JsonPath> features,
              std::optional<JsonPath> target)
      : DecoderBase(config, std::move(shape)), features_(std::move(features)), target_(std::move(target)) {}

  [[nodiscard]] std::string feature(std::size_t column) const override {
    // A path to a list does not say how many numbers it yields: then no column is known by name.
    if (total_width(features_) != columns()) return {};
    auto path = features_.begin();
    for (; *path->width() <= column; ++path) column -= *path->width();
    return path->name_of(column);
  }

 private:
  enum class Mode : std::uint8_t { one_object, array, lines };

  std::optional<DropReason> open_record(std::span<const std::byte> value) noexcept override {
    buffer_.resize(std::max(buffer_.size(), value.size() + simdjson::SIMDJSON_PADDING));
    std::copy_n(reinterpret_cast<const char*>(value.data()), value.size(), buffer_.data());
    // Old bytes behind a shorter record must not look like a part of it.
    std::fill_n(buffer_.data() + value.size(), simdjson::SIMDJSON_PADDING, '\0');
    const std::string_view text = trim({buffer_.data(), value.size()});
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

  static bool has_object_line(std::string_view text) noexcept {
    if (text.starts_with('[') || text.find('\n') == std::string_view::npos) return false;
    for (auto line = take_line(text); !line.empty(); line = take_line(text))
      if (looks_like_object(line)) return true;
    return false;
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
    describe("the array has no row");
    return DropReason::malformed;
  }

  /// Parses into root_. `text` lies in buffer_, which has room behind it.
  std::optional<DropReason> parse(std::string_view text) noexcept {
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
    filled_ = 0;
    for (const auto& path : features_) {
      current_ = &path;
      if (const auto wrong = walk(object, 0, out.features)) return wrong;
    }
    if (filled_ != out.features.size()) {
      describe("the features have fewer numbers than the shape");
      return DropReason::wrong_shape;
    }
    if (!target_) return std::nullopt;
    current_ = &*target_;
    return read_target(object, out);
  }

  std::optional<DropReason> read_target(dom::element object, RowSlot out) noexcept {
    dom::element at = object;
    for (const auto& step : target_->steps)
      if (const auto wrong = enter(at, step)) return wrong;
    double x = 0;
    const bool number = at.get(x) == simdjson::SUCCESS;
    if (number && !has_class_names()) return target_into(out.targets[0], x);
    const auto label = label_text(at);
    if (!label) return not_a_number();
    return has_class_names() ? class_into(out.targets[0], *label) : unnamed_label(*label);
  }

  template <class Whole>
  std::string_view text_of_whole(Whole number) noexcept {
    const auto end = std::to_chars(label_.data(), label_.data() + label_.size(), number).ptr;
    return {label_.data(), static_cast<std::size_t>(end - label_.data())};
  }

  /// Text, true and false as they are, a number in its shortest form (1.0 is 1); nullopt: none of them.
  std::optional<std::string_view> label_text(dom::element at) noexcept {
    std::string_view text;
    if (at.get(text) == simdjson::SUCCESS) return text;
    if (bool yes = false; at.get(yes) == simdjson::SUCCESS) return yes ? "true" : "false";
    if (std::int64_t whole = 0; at.get(whole) == simdjson::SUCCESS) return text_of_whole(whole);
    if (std::uint64_t large = 0; at.get(large) == simdjson::SUCCESS) return text_of_whole(large);
    if (double x = 0; at.get(x) == simdjson::SUCCESS) return text_of(x, label_);
    return std::nullopt;
  }

  /// Follows the steps of the current path from `step` on; a slice fans out. Appends every number it reaches.
  std::optional<DropReason> walk(dom::element at, std::size_t step, std::span<float> out,
                                 bool sliced = false) noexcept {
    for (; step < current_->steps.size(); ++step) {
      if (current_->steps[step].kind == JsonStep::Kind::slice) return fan_out(at, step, out);
      if (const auto wrong = enter(at, current_->steps[step])) return wrong;
    }
    if (!nested_as_shape(at, sliced)) return wrong_nesting();
    return append(at, out);
  }

  /// A list of numbers is as it is; lists in lists, and a list where a slice promised numbers, must have the
  /// lengths of the shape's last dimensions: [[1], [2], [3]] is not three numbers. Lists of one around the
  /// whole do not matter.
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

  /// How many lists the first number lies in.
  static std::size_t rank_of(dom::element at) noexcept {
    std::size_t rank = 0;
    for (dom::array array; at.get(array) == simdjson::SUCCESS; at = *array.begin()) {
      ++rank;
      if (array.size() == 0) break;
    }
    return rank;
  }

  /// Lists of these lengths, and no list below the last; of any length if there are none.
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
    describe("lists in a list of other lengths than decode.json.shape", current_->text);
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

  /// One key or index deeper.
  std::optional<DropReason> enter(dom::element& at, const JsonStep& step) noexcept {
    simdjson::error_code error = simdjson::SUCCESS;
    if (step.kind == JsonStep::Kind::key) {
      error = at.at_key(step.key).get(at);
    } else {
      if (!at.is_array()) return not_an_array();
      error = at.at(step.first).get(at);
    }
    if (error == simdjson::SUCCESS) return std::nullopt;
    describe("the row has no field", current_->text);
    return DropReason::missing_field;
  }

  /// A number, or an array of numbers of any depth, row-major.
  std::optional<DropReason> append(dom::element at, std::span<float> out) noexcept {
    dom::array array;
    if (at.get(array) == simdjson::SUCCESS) {
      for (const auto element : array)
        if (const auto wrong = append(element, out)) return wrong;
      return std::nullopt;
    }
    double x = 0;
    if (at.get(x) != simdjson::SUCCESS) return not_a_number();
    if (filled_ == out.size()) {
      describe(
          "the features have more numbers than the shape: name a part of a list, like current[0:3], or the "
          "shape",
          current_->text);
      return DropReason::wrong_shape;
    }
    const std::size_t column = filled_++;
    if (scale_into(out[column], x, column)) return std::nullopt;
    describe("a feature is not finite", current_->text);
    return DropReason::nonfinite_value;
  }

  std::optional<DropReason> not_a_number() noexcept {
    describe("not a number", current_->text);
    return DropReason::wrong_type;
  }
  std::optional<DropReason> not_an_array() noexcept {
    describe("not an array", current_->text);
    return DropReason::wrong_type;
  }

  // constant
  std::vector<JsonPath> features_;
  std::optional<JsonPath> target_;
  // of the current record
  dom::parser parser_;
  std::vector<char> buffer_;
  Mode mode_ = Mode::one_object;
  dom::element root_;
  dom::array::iterator at_;
  dom::array::iterator end_;
  bool pending_ = false;
  std::string_view rest_;
  const JsonPath* current_ = nullptr;
  std::size_t filled_ = 0;
  std::array<char, 32> label_{};
};

Error with_key(std::string_view key, const Error& error) {
  return {error.code, "decode.json." + std::string(key) + ": " + error.message};
}

Result<std::optional<JsonPath>> target_of(const DecodeConfig& config) {
  if (config.target.empty()) return std::optional<JsonPath>();
  auto path = parse_json_path(config.target);
  if (!path) return with_key("target", path.error());
  for (const auto& step : path.value().steps)
    if (step.kind == JsonStep::Kind::slice)
      return Error{ErrorCode::invalid_config,
                   "decode.json.target: \"" + config.target + "\" must be a single number"};
  return std::optional<JsonPath>(std::move(path).value());
}

Result<std::unique_ptr<Decoder>> make(const DecodeConfig& config) {
  std::vector<JsonPath> features;
  for (const auto& feature : config.features) {
    auto path = parse_json_path(feature);
    if (!path) return with_key("features", path.error());
    features.push_back(std::move(path).value());
  }
  if (features.empty())
    return Error{ErrorCode::invalid_config, "decode.json.features is empty: name the fields to learn from"};
  auto target = target_of(config);
  if (!target) return target.error();
  const std::size_t width = total_width(features);
  if (width == 0 && config.shape.empty())
    return Error{ErrorCode::invalid_config,
                 "decode.json.shape is missing: an open slice does not say how many numbers a row has"};
  auto shape = row_shape_of(config, width, target.value().has_value());
  if (!shape) return shape.error();
  return std::unique_ptr<Decoder>(
      new JsonDecoder(config, std::move(shape).value(), std::move(features), std::move(target).value()));
}

constexpr Key json_keys[] = {
    {.name = "decode.json.features",
     .type = KeyType::texts,
     .text = "[]",
     .help = "paths to numbers: a.b, a[2], a[0:3] (without the end)",
     .sample = "#[\"temp\", \"vibration.rms\", \"current[0:3]\"]"},
    {.name = "decode.json.target",
     .type = KeyType::text,
     .text = "\"\"",
     .help = "path to the label: a number; classes: a whole number from 0 on, or one of decode.json.classes",
     .sample = "#\"label\""},
    {.name = "decode.json.classes",
     .type = KeyType::texts,
     .text = "[]",
     .help = "labels that are text, true or false: the first is class 0; model.classes follows",
     .sample = "#[\"ok\", \"fault\"]"},
    {.name = "decode.json.shape",
     .type = KeyType::integers,
     .text = "[]",
     .help = "empty = one axis",
     .least = 1,
     .most = 1e7,
     .sample = "#[]"},
    {.name = "decode.json.scale",
     .type = KeyType::numbers,
     .text = "\"auto\"",
     .help = "mean 0 and deviation 1, measured in training; or x * scale + shift, [one each]",
     .choices = "auto",
     .sample = "#\"auto\""},
    {.name = "decode.json.shift", .type = KeyType::numbers, .text = "0.0", .help = "", .sample = "#0.0"},
};

}  // namespace

extern const DecoderEntry decoder_json;
const DecoderEntry decoder_json{"json", "an object, an array of objects, or JSON lines; features by path",
                                make, json_keys};

}  // namespace rivulet::stream
