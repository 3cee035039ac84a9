#pragma once
#include <string>
#include <string_view>

#include "core/result.h"

namespace rivulet::stream {

/// Which rows of a topic are meant: those whose field has this value, as text.
struct Where {
  std::string field;  ///< a path or a column, as the format writes them
  std::string value;
};

/// "type = reading", "type = \"a = b\"": what stands before the first '=' and behind it, without blanks and
/// quotes around. Errors: invalid_config, without the key.
Result<Where> parse_where(std::string_view text);

/// For keys: empty, or something that parse_where() reads.
bool is_where(std::string_view text);
inline constexpr std::string_view where_form = "FIELD = VALUE, like \"type = reading\"";

}  // namespace rivulet::stream
