#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/time.h"
#include "runtime/process/log.h"

namespace rivulet::runtime {

enum class LogFormat : std::uint8_t { pretty, pretty_color, logfmt, json };

std::string_view name_of(Level level) noexcept;

/// Formats one line without its newline. Escapes message and fields, so that they cannot break the line and
/// values can be parsed. `time_ms`: Unix time.
std::string format_line(LogFormat format, long long time_ms, Level level, std::string_view message,
                        const Fields& fields);

/// Rate limit per message: within a second a message is logged up to `varied_max` times, and only if its
/// fields differ. Further repeats are counted and reported when the second is over. The result depends only
/// on arguments and past calls. Not thread-safe.
class RepeatFilter {
 public:
  static constexpr Duration window = std::chrono::seconds(1);
  static constexpr std::uint32_t varied_max = 5;
  static constexpr std::size_t messages_max =
      256;  ///< maximum of tracked messages; further ones are always logged

  struct Swallowed {
    Level level;
    std::string message;
    std::uint64_t count;
  };
  /// True if the line should be written.
  bool admit(TimePoint now, Level level, std::string_view message, const Fields& fields);
  /// Removes expired windows (all of them for TimePoint::max()) and returns those with suppressed lines,
  /// sorted by level and message.
  std::vector<Swallowed> take_ended(TimePoint now);

 private:
  struct Seen {
    TimePoint begin;
    std::string fields;  // fields of the last logged line
    std::uint32_t logged = 0;
    std::uint64_t swallowed = 0;
  };
  std::map<std::pair<Level, std::string>, Seen> seen_;
  TimePoint next_end_ = TimePoint::max();  // no window expires before this
};

}  // namespace rivulet::runtime
