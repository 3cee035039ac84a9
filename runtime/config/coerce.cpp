#include "runtime/config/coerce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/config/interpolate.h"
#include "runtime/config/toml_text.h"

namespace rivulet::runtime {

namespace {

bool is_string_like(const std::string& type) {
  return type == kind::text || type == kind::duration || type == kind::size || type == kind::offset;
}
bool is_list(const std::string& type) {
  return type == kind::texts || type == kind::integers || type == kind::partitions;
}

bool all_digits(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

std::optional<Value> toml_value(const std::string& text) {
  if (text.find('\n') != std::string::npos) return std::nullopt;
  auto parsed = read_toml("x = " + text, "");
  if (!parsed.problems.empty() || parsed.leaves.size() != 1 || parsed.leaves[0].path.size() != 1)
    return std::nullopt;
  parsed.leaves[0].value.place = {};
  return parsed.leaves[0].value;
}

std::string trimmed(const std::string& text, const char* what) {
  const auto begin = text.find_first_not_of(what);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(what) - begin + 1);
}

/// Parses a,b or [a, b]. "t:1,2" stays one item: a number after a claim belongs to it.
Value bare_list(const std::string& type, const std::string& text) {
  std::vector<std::string> items;
  std::string inner = trimmed(text, " \t");
  if (inner.starts_with('[') && inner.ends_with(']'))
    inner = trimmed(inner.substr(1, inner.size() - 2), " \t");
  for (std::size_t at = 0; at <= inner.size() && !inner.empty();) {
    const std::size_t end = std::min(inner.find(',', at), inner.size());
    const std::string item = trimmed(inner.substr(at, end - at), " \t\"'");
    const bool goes_on = item.find_first_not_of("0123456789-") == std::string::npos && !items.empty() &&
                         items.back().find(':') != std::string::npos;
    if (goes_on) {
      items.back() += "," + item;
    } else {
      items.push_back(item);
    }
    at = end + 1;
  }
  Value::List list;
  for (const auto& item : items) {
    Value value;
    value.data = item;
    if (type != kind::texts && all_digits(item) && item.size() < 18)
      value.data = std::int64_t{std::stoll(item)};
    list.push_back(value);
  }
  return {list, {}, false, false};
}

bool interpolate_text(Value& value, const Setting& setting, const Variables& variables, Problems& problems) {
  const std::string* text = value.text();
  if (text == nullptr) return true;
  auto done = interpolate(*text, variables);
  if (!done) {
    Setting at_value = setting;
    if (value.place.line > 0) at_value.place = value.place;
    report_error(problems, at_value, done.error().message);
    return false;
  }
  if (done.value().changed) value.written = *text;
  value.data = done.value().text;
  value.interpolated = done.value().changed;
  value.secret = done.value().secret;
  return true;
}

std::optional<Value> as_number(Value value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.data))
    value.data = static_cast<double>(*integer);
  return std::holds_alternative<double>(value.data) ? std::optional(std::move(value)) : std::nullopt;
}

std::optional<Value> as_numbers(Value value) {
  auto* list = std::get_if<Value::List>(&value.data);
  if (list == nullptr) return as_number(std::move(value));
  for (auto& item : *list) {
    auto number = as_number(std::move(item));
    if (!number) return std::nullopt;
    item = std::move(*number);
  }
  return value;
}

/// Converts the value to the canonical form of the type; returns nullopt if the type is wrong.
std::optional<Value> as_type(const std::string& type, Value value) {
  const auto* integer = std::get_if<std::int64_t>(&value.data);
  const auto* text = value.text();
  if (type == kind::text && text != nullptr) return value;
  if (type == kind::integer && integer != nullptr) return value;
  if (type == kind::boolean && std::holds_alternative<bool>(value.data)) return value;
  if (type == kind::number) return as_number(std::move(value));
  if (type == kind::numbers) return as_numbers(std::move(value));
  if (type == kind::duration && text != nullptr) {
    const auto duration = parse_duration(*text);
    if (!duration) return std::nullopt;
    value.data = render_duration(duration.value());
    return value;
  }
  if (type == kind::size) {
    const auto bytes = text != nullptr ? parse_bytes(*text) : parse_bytes(render(value));
    if (!bytes) return std::nullopt;
    value.data = static_cast<std::int64_t>(bytes.value());
    return value;
  }
  if (type == kind::offset && (text != nullptr || integer != nullptr)) {
    if (integer != nullptr) value.data = std::to_string(*integer);
    return value;
  }
  const auto* list = std::get_if<Value::List>(&value.data);
  if (!is_list(type) || list == nullptr) return std::nullopt;
  const bool fits = std::all_of(list->begin(), list->end(), [&](const Value& item) {
    const bool is_text = item.text() != nullptr;
    const bool is_integer = std::holds_alternative<std::int64_t>(item.data);
    return type == kind::texts ? is_text : type == kind::integers ? is_integer : is_text || is_integer;
  });
  return fits ? std::optional(value) : std::nullopt;
}

std::string number_text(double v) {
  return fmt::format("{}", v);
}

/// Returns why a number is out of bounds; empty if it is not.
std::string out_of_bounds(const Bounds& bounds, double v, const std::string& shown, bool seconds) {
  const std::string unit = seconds ? "s" : "";
  if (!std::isfinite(v)) return "is " + shown + ", must be a finite number";
  if (bounds.above ? v <= bounds.least : v < bounds.least) {
    return "is " + shown + ", must be " + (bounds.above ? "above " : "at least ") +
           number_text(bounds.least) + unit;
  }
  if (v > bounds.most) return "is " + shown + ", must be at most " + number_text(bounds.most) + unit;
  return {};
}

/// Like out_of_bounds(), but for the length of a string.
std::string out_of_length(const Bounds& bounds, std::size_t size) {
  const auto length = static_cast<double>(size);
  if (length >= bounds.least && length <= bounds.most) return {};
  if (bounds.least == 1 && bounds.most == 1) return "must be one character";
  return fmt::format("has {} characters, must have {:.0f} to {:.0f}", size, bounds.least, bounds.most);
}

std::string out_of_bounds(const KeyRow& row, const Value& value) {
  const auto number = shown_text(value, render(value));
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) {
    return out_of_bounds(row.bounds, static_cast<double>(*integer), number, false);
  }
  if (const auto* real = std::get_if<double>(&value.data))
    return out_of_bounds(row.bounds, *real, number, false);
  if (row.spec.type == kind::duration) {
    const double seconds = to_seconds(parse_duration(*value.text()).value());
    return out_of_bounds(row.bounds, seconds, shown_text(value, *value.text()), true);
  }
  if (row.spec.type == kind::text) return out_of_length(row.bounds, value.text()->size());
  const auto* list = std::get_if<Value::List>(&value.data);
  if (list == nullptr || (row.spec.type != kind::integers && row.spec.type != kind::numbers)) return {};
  for (const auto& item : *list) {
    if (std::string wrong = out_of_bounds(row, item); !wrong.empty()) return "has an item that " + wrong;
  }
  return {};
}

std::string not_a_choice(const KeySpec& spec, const Value& value) {
  const std::string* text = value.text();
  if (text == nullptr) return {};
  const auto among = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), *text) != names.end();
  };
  if (spec.choices.empty() || among(spec.choices)) return {};
  if (among(spec.later)) return {};  // reported by not_in_this_version()
  const std::string meant = value.interpolated ? "" : did_you_mean(*text, spec.choices);
  return "is '" + shown_text(value, *text) + "', must be one of: " + joined(spec.choices) + meant;
}

std::string misshapen(const KeyRow& row, const Value& value) {
  const std::string* text = value.text();
  if (text == nullptr || row.fits == nullptr || row.fits(*text)) return {};
  return "is '" + shown_text(value, *text) + "', must be " + std::string(row.form);
}

std::string not_in_this_version(const KeySpec& spec, const Value& value) {
  const std::string* text = value.text();
  const bool later =
      text != nullptr && std::find(spec.later.begin(), spec.later.end(), *text) != spec.later.end();
  if (later) return "= '" + shown_text(value, *text) + "' is not in this version";
  if (spec.since.empty()) return {};
  const auto standard = as_type(spec.type, value_of_text(spec.type, spec.text));
  if (standard && *standard == value) return {};
  if (spec.text == "\"\"") return "is not in this version";
  return "= " + shown(value) + " is not in this version, only " + spec.text + " is";
}

/// Whether the value is a keyword allowed in place of numbers.
bool is_word(const KeySpec& spec, const Value& value) {
  return spec.type == kind::numbers && value.text() != nullptr &&
         std::ranges::find(spec.choices, *value.text()) != spec.choices.end();
}

/// Whether a required list of numbers is empty.
bool is_wrongly_empty(const KeySpec& spec, const Value& value) {
  const auto* list = std::get_if<Value::List>(&value.data);
  return spec.type == kind::numbers && list != nullptr && list->empty() && spec.text != "[]";
}

std::optional<Value> fitting(const KeySpec& spec, const Value& given) {
  if (is_word(spec, given)) return given;
  return is_wrongly_empty(spec, given) ? std::nullopt : as_type(spec.type, given);
}

std::string wrong_type(const KeyRow& row, const Value& given) {
  const KeySpec& spec = row.spec;
  if (row.or_number) return "must be " + std::string(row.form) + ", not " + describe(given);
  const bool has_words = spec.type == kind::numbers && !spec.choices.empty();
  const std::string words = has_words ? " or '" + joined(spec.choices) + "'" : "";
  return "must be " + with_article(spec.type) + words + ", not " + describe(given);
}

bool is_number(const Value& value) {
  return std::holds_alternative<std::int64_t>(value.data) || std::holds_alternative<double>(value.data);
}

}  // namespace

Setting default_setting(const KeyRow& row, std::string source) {
  return {row.spec.key, value_of_text(row.spec.type, row.spec.text), {}, std::move(source), "default"};
}

std::string with_article(const std::string& type) {
  if (type == kind::integer) return "an integer";
  if (type == kind::offset) return "a string or an integer";
  if (type == kind::boolean) return "true or false";
  if (type == kind::duration) return "a duration such as \"100ms\"";
  if (type == kind::size) return "a size such as \"1 MiB\"";
  if (type == kind::partitions) return "a list of partitions such as [0, 1] or [\"topic:0-3\"]";
  return "a " + type;
}

Value value_of_text(const std::string& type, const std::string& text) {
  const bool quoted = !text.empty() && (text.front() == '"' || text.front() == '\'');
  std::optional<Value> value;
  if (quoted || !is_string_like(type)) value = toml_value(text);
  const bool listed = value && std::holds_alternative<Value::List>(value->data);
  if (is_list(type) && !listed) return bare_list(type, text);
  if (type == kind::numbers && !value) value = toml_value("[" + text + "]");
  return value ? *value : Value{text, {}, false, false};
}

bool interpolate_value(Setting& setting, const Variables& variables, Problems& problems) {
  auto* list = std::get_if<Value::List>(&setting.value.data);
  if (list == nullptr) return interpolate_text(setting.value, setting, variables, problems);
  return std::all_of(list->begin(), list->end(),
                     [&](Value& item) { return interpolate_text(item, setting, variables, problems); });
}

std::optional<Value> coerce(const KeyRow& row, Setting setting, Problems& problems) {
  Value given = setting.value;
  if (given.interpolated && !is_string_like(row.spec.type)) {
    given.data = value_of_text(row.spec.type, *given.text()).data;
  }
  if (row.or_number && is_number(given)) given.data = render(given);
  if (given.place.line > 0) setting.place = given.place;
  const std::string name = "'" + row.spec.key + "' ";
  const auto value = fitting(row.spec, given);
  if (!value) {
    report_error(problems, setting, name + wrong_type(row, given));
    return std::nullopt;
  }
  for (const auto& wrong : {not_in_this_version(row.spec, *value), not_a_choice(row.spec, *value),
                            out_of_bounds(row, *value), misshapen(row, *value)}) {
    if (wrong.empty()) continue;
    report_error(problems, setting, name + wrong);
    return std::nullopt;
  }
  return value;
}

std::optional<Value> coerce_property(Setting setting, Problems& problems) {
  Value value = setting.value;
  const bool scalar =
      !std::holds_alternative<Value::List>(value.data) && !std::holds_alternative<Value::Other>(value.data);
  if (!scalar) {
    if (value.place.line > 0) setting.place = value.place;
    report_error(problems, setting,
                 "'" + setting.key + "' must be a string, a number, true or false, not " + describe(value));
    return std::nullopt;
  }
  if (value.text() == nullptr) value.data = render(value);
  return value;
}

}  // namespace rivulet::runtime
