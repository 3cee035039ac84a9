#pragma once
#include <functional>
#include <optional>
#include <string>

#include "runtime/config/key_rows.h"

/// Converts written values to the types that keys accept (private to config/).
namespace rivulet::runtime {

using Variables = std::function<std::optional<std::string>(const std::string&)>;

/// Parses a value given as text outside a file: TOML, with bare strings and bare lists ("a,b", "0-3") where
/// the type allows.
Value value_of_text(const std::string& type, const std::string& text);

/// Returns the default of a key's row as a setting without a source line.
Setting default_setting(const KeyRow& row, std::string source = {});

/// Returns "an integer", "a duration such as ...", for messages.
std::string with_article(const std::string& type);

/// Replaces ${...} in the value's strings. Returns false after reporting a problem.
bool interpolate_value(Setting& setting, const Variables& variables, Problems& problems);

/// Checks type, bounds and choices of an interpolated value. Returns its canonical form for setters: a
/// duration as its shortest text, a size as an integer, a number as a real. Reports a problem and returns
/// nothing if it is invalid.
std::optional<Value> coerce(const KeyRow& row, Setting setting, Problems& problems);

/// Converts an interpolated client property: any scalar is passed on as text. Rejects lists and tables.
std::optional<Value> coerce_property(Setting setting, Problems& problems);

}  // namespace rivulet::runtime
