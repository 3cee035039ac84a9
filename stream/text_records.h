#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace rivulet::stream {

/// Where one record lies in the text of a file.
struct TextRecord {
  std::size_t begin = 0;
  std::size_t size = 0;
};

/// One record per line that is not blank; a first line in which no field is a number is a header and skipped.
/// Errors: bad_record (file, line) for a line with another number of columns or an open quote.
Result<std::vector<TextRecord>> csv_records(const std::string& path, std::string_view text);

/// One object per line, or one array of objects over the whole file.
/// Errors: bad_record (file, line) for what is not JSON.
Result<std::vector<TextRecord>> json_records(const std::string& path, std::string_view text);

}  // namespace rivulet::stream
