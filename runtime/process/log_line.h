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

/// One line without its end: whatever message and fields contain, it stays one line, and every value can be
/// separated from the next. `time_ms` is wall-clock time since 1970.
std::string format_line(LogFormat format, long long time_ms, Level level, std::string_view message,
                        const Fields& fields);

/// Decides what is logged and what is only counted: within a second a message is logged `varied_max` times,
/// and only while its fields differ; the rest is counted and reported afterwards. Pure but for what it
/// remembers; not thread-safe.
class RepeatFilter {
 public:
  static constexpr Duration window = std::chrono::seconds(1);
  static constexpr std::uint32_t varied_max = 5;
  static constexpr std::size_t messages_max =
      256;  ///< that many different ones are remembered, the others all logged

  struct Swallowed {
    Level level;
    std::string message;
    std::uint64_t count;
  };
  /// True if the line should be written.
  bool admit(TimePoint now, Level level, std::string_view message, const Fields& fields);
  /// Windows that have ended (all of them with TimePoint::max()) and swallowed something, oldest name first;
  /// forgets them.
  std::vector<Swallowed> take_ended(TimePoint now);

 private:
  struct Seen {
    TimePoint begin;
    std::string fields;  // of the line logged last
    std::uint32_t said = 0;
    std::uint64_t swallowed = 0;
  };
  std::map<std::pair<Level, std::string>, Seen> seen_;
  TimePoint next_end_ = TimePoint::max();  // no window ends before this
};

}  // namespace rivulet::runtime
