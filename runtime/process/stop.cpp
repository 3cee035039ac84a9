#include "runtime/process/stop.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace rivulet::runtime {
namespace {

/// Parses the whole text as a positive number.
template <class T>
bool parse_positive(const std::string& text, T& out) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc{} && stop == end && out > T{0};
}

}  // namespace

Result<StopAfter> parse_stop_after(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string unit = text.substr(0, equals);
  const std::string number = equals == std::string::npos ? "" : text.substr(equals + 1);
  StopAfter out;
  if (unit == "rows" && parse_positive(number, out.rows)) return out;
  if (unit == "rounds" && parse_positive(number, out.rounds)) return out;
  if (unit == "seconds" && parse_positive(number, out.seconds) && std::isfinite(out.seconds)) return out;
  return Error{ErrorCode::usage,
               fmt::format("--stop-after '{}' must be rows=N, rounds=N or seconds=N with N > 0", text)};
}

}  // namespace rivulet::runtime
