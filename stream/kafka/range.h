#pragma once
#include <cstdint>
#include <string>

#include "stream/kafka/client.h"

namespace rivulet::stream::kafka {

/// Position of an offset relative to the broker's log.
enum class Place : std::uint8_t {
  inside,
  cut,     ///< below the first record: retention overtook the reader
  beyond,  ///< above the end: the log is shorter than before
};
Place place_of(std::int64_t offset, Watermarks marks) noexcept;

/// Messages for a stopped partition, with topic, partition, offset and the broker's offsets.
std::string why_cut(const TopicPartition& partition, std::int64_t offset, Watermarks marks);
std::string why_beyond(const TopicPartition& partition, std::int64_t offset, Watermarks marks);
/// `anchor`: offset of the record that was read before and has changed.
std::string why_other_log(const TopicPartition& partition, std::int64_t offset, std::int64_t anchor,
                          Watermarks marks);

}  // namespace rivulet::stream::kafka
