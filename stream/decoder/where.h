#pragma once
#include <string>
#include <string_view>

#include "core/result.h"

namespace rivulet::stream {

/// Row filter: selects rows whose field has this value, as text.
struct Where {
  std::string field;  ///< a path or a column, in the syntax of the format
  std::string value;
};

/// Parses "type = reading" or "type = \"a = b\"": the text before and after the first '=', without
/// surrounding blanks and quotes. Errors: invalid_config, without the key.
Result<Where> parse_where(std::string_view text);

/// Check for configuration keys: whether `text` is empty or valid for parse_where().
bool is_where(std::string_view text);
inline constexpr std::string_view where_form = "FIELD = VALUE, like \"type = reading\"";

}  // namespace rivulet::stream
