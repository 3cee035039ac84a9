#include "stream/kafka/range.h"

#include <fmt/format.h>

#include "stream/kafka/leaders.h"

namespace rivulet::stream::kafka {
namespace {

std::string available_range(Watermarks marks) {
  return fmt::format("log start offset {}, end offset {}", marks.low, marks.high);
}

}  // namespace

Place place_of(std::int64_t offset, Watermarks marks) noexcept {
  if (offset < marks.low) return Place::cut;
  return offset > marks.high ? Place::beyond : Place::inside;
}

std::string why_cut(const TopicPartition& partition, std::int64_t offset, Watermarks marks) {
  return fmt::format(
      "{}: offset {} does not exist ({}): {} offsets were deleted before they were read (retention). "
      "The partition is stopped; source.on_gap = \"count\" counts the gap and continues after it",
      name_of(partition), offset, available_range(marks), marks.low - offset);
}

std::string why_beyond(const TopicPartition& partition, std::int64_t offset, Watermarks marks) {
  return fmt::format(
      "{}: offset {} does not exist ({}): the log has lost its last records, or the topic was deleted and "
      "recreated. The partition is stopped",
      name_of(partition), offset, available_range(marks));
}

std::string why_other_log(const TopicPartition& partition, std::int64_t offset, std::int64_t anchor,
                          Watermarks marks) {
  const std::string passed =
      offset > anchor + 1
          ? fmt::format(" Offsets {} up to {} may have been read from the new log.", anchor + 1, offset)
          : std::string();
  return fmt::format(
      "{}: this is not the log that was read before: the record at offset {} has "
      "changed. The topic was deleted and recreated, or the log has lost its last records. The partition is "
      "stopped at offset {} ({}).{}",
      name_of(partition), anchor, offset, available_range(marks), passed);
}

}  // namespace rivulet::stream::kafka
