#pragma once
#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/assignment.h"
#include "stream/open.h"

/// Assigns partitions to a source, which reads nothing before. Replaces the train thread in tests.
namespace rivulet::testing {

using Offsets = std::map<PartitionId, std::int64_t>;

/// Assigns these partitions, each from its offset in `from`, or from the start of its source.
inline Assignment reads(const std::vector<PartitionId>& partitions, const Offsets& from = {}) {
  Assignment out;
  for (const auto& id : partitions) {
    const auto at = from.find(id);
    out.cursors[id] = at != from.end() ? std::optional(RowCursor{at->second, 0}) : std::nullopt;
  }
  return out;
}

inline std::unique_ptr<stream::RecordSource> reading(std::unique_ptr<stream::RecordSource> source,
                                                     const std::vector<PartitionId>& partitions,
                                                     const Offsets& from = {}) {
  const Status assigned = source->assign(reads(partitions, from));
  REQUIRE_MESSAGE(assigned, assigned.error().message);
  return source;
}

/// Repeats the source's assignment with new offsets for some of its partitions.
inline Status seek(stream::RecordSource& source, std::span<const NextOffset> positions) {
  std::vector<PartitionId> partitions;
  for (const auto& state : source.partitions()) partitions.push_back(state.id);
  Assignment to = reads(partitions);
  for (const auto& position : positions) to.cursors[position.partition] = RowCursor{position.offset, 0};
  return source.assign(to);
}

/// A Kafka source and its assignment.
struct KafkaReading : stream::KafkaSourceConfig {
  std::vector<stream::TopicPartition> partitions;
  Offsets resume;

  [[nodiscard]] Result<std::unique_ptr<stream::RecordSource>> open(const Clock& clock,
                                                                   MetricsSink& metrics) const {
    stream::KafkaSourceConfig config = *this;
    std::vector<PartitionId> ids;
    for (const auto& [topic, id] : partitions) {
      config.topics.resize(std::max<std::size_t>(config.topics.size(), id.topic + 1));
      config.topics[id.topic] = topic;
      ids.push_back(id);
    }
    auto source = stream::open_kafka_source(config, clock, metrics);
    if (!source) return source.error();
    return reading(std::move(source).value(), ids, resume);
  }
};

}  // namespace rivulet::testing
