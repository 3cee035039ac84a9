#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace rivulet::stream {

/// Position of one record in the text of a file.
struct TextRecord {
  std::size_t begin = 0;
  std::size_t size = 0;
};

/// One record per non-blank line; a first line without numbers is skipped as a header. Errors: bad_record
/// (file, line) for a line with a different number of columns or an unclosed quote.
Result<std::vector<TextRecord>> csv_records(const std::string& path, std::string_view text);

/// One object per line, or one array of objects for the whole file. Errors: bad_record (file, line) for
/// invalid JSON.
Result<std::vector<TextRecord>> json_records(const std::string& path, std::string_view text);

}  // namespace rivulet::stream
