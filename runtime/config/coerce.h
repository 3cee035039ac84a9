#pragma once
#include <functional>
#include <optional>
#include <string>

#include "runtime/config/key_rows.h"

/// From what was written to what a key may hold (private to config/).
namespace rivulet::runtime {

using Variables = std::function<std::optional<std::string>(const std::string&)>;

/// A value given as text outside a file: TOML, with bare strings and bare lists ("a,b", "0-3") where the type
/// allows.
Value value_of_text(const std::string& type, const std::string& text);

/// The default of a row, as a setting that nobody wrote.
Setting default_setting(const KeyRow& row, std::string source = {});

/// "an integer", "a duration such as ...", for messages.
std::string with_article(const std::string& type);

/// Replaces ${...} in the value's strings. False after a complaint.
bool interpolate_value(Setting& setting, const Variables& variables, Problems& problems);

/// Checks type, bounds and choices of a value that is interpolated; returns it in the one form that setters
/// read: a duration as its shortest text, a size as an integer, a number as a real. Complains and returns
/// nothing if it does not fit.
std::optional<Value> coerce(const KeyRow& row, Setting setting, Problems& problems);

/// A client property, interpolated: any scalar, passed on as text. Complains about lists and tables.
std::optional<Value> coerce_property(Setting setting, Problems& problems);

}  // namespace rivulet::runtime
