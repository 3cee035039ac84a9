#pragma once
#include <cstdint>
#include <string>

#include "stream/kafka/client.h"

namespace rivulet::stream::kafka {

/// Where a position lies in what the broker has.
enum class Place : std::uint8_t {
  inside,
  cut,     ///< below the first record: retention was faster than the reader
  beyond,  ///< above the end: the log is shorter than it was
};
Place place_of(std::int64_t offset, Watermarks marks) noexcept;

/// The sentences for a partition that stops, with topic, partition, offset and what the broker has.
std::string why_cut(const TopicPartition& partition, std::int64_t offset, Watermarks marks);
std::string why_beyond(const TopicPartition& partition, std::int64_t offset, Watermarks marks);
/// `anchor`: the record that was read there once and is another one now.
std::string why_other_log(const TopicPartition& partition, std::int64_t offset, std::int64_t anchor,
                          Watermarks marks);

}  // namespace rivulet::stream::kafka
