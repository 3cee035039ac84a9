#include "runtime/cli/rows/topic_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "core/clock.h"
#include "core/metrics.h"

namespace rivulet::runtime::cli {
namespace {

constexpr auto broker_deadline = std::chrono::seconds(10);
constexpr auto quiet_most = std::chrono::seconds(5);

stream::KafkaSourceConfig source_of(const TopicReading& reading) {
  stream::KafkaSourceConfig source;
  source.properties = reading.properties;
  source.client_id = "rivulet-peek";
  source.group_id = reading.group;
  source.start = reading.start;
  for (const int p : reading.partitions) source.partitions.push_back({reading.topic, {0, p}});
  return source;
}

bool seen_ends(std::span<const stream::PartitionState> states) {
  return std::all_of(states.begin(), states.end(), [](const auto& p) { return p.high_watermark >= 0; });
}

bool at_end(std::span<const stream::PartitionState> states) {
  return std::all_of(states.begin(), states.end(), [](const auto& p) {
    return p.high_watermark >= 0 &&
           (p.next_offset >= p.high_watermark || p.held_from >= 0 || !p.stopped.empty());
  });
}

/// From the end back by as many records as are wanted, so that "latest" shows what there is.
Status rewind(stream::RecordSource& source, std::uint64_t records) {
  const auto states = source.partitions();
  const auto each = static_cast<std::int64_t>((records + states.size() - 1) / states.size());
  std::vector<NextOffset> positions;
  for (const auto& p : states)
    positions.push_back({p.id, std::max({p.high_watermark - each, p.low_watermark, std::int64_t{0}})});
  return source.seek(positions);
}

}  // namespace

Status read_topic(const TopicReading& reading, const StopRequest& stop,
                  const std::function<bool(const Record&)>& use) {
  const RealClock clock;
  NullMetrics metrics;
  const auto opened = stream::open_kafka_source(source_of(reading), clock, metrics);
  if (!opened) return opened.error();
  stream::RecordSource& source = *opened.value();
  const auto deadline = clock.now() + broker_deadline;
  // The last offsets of a log may be no records: the marks that transactions end with.
  auto quiet_since = clock.now();
  bool rewound = reading.start.kind != stream::StartOffset::Kind::latest;
  while (stop.load() == 0) {
    const auto records = source.poll(64, std::chrono::milliseconds(100));
    if (!records) return records.error();
    const auto states = source.partitions();
    if (!seen_ends(states) && clock.now() > deadline)
      return Error{ErrorCode::unavailable,
                   fmt::format("nothing heard from topic {} within 10 s", reading.topic)};
    if (!rewound) {
      if (!seen_ends(states)) continue;
      if (auto status = rewind(source, reading.records); !status) return status;
      rewound = true;
      quiet_since = clock.now();
      continue;
    }
    for (const auto& record : records.value())
      if (!use(record)) return ok();
    if (!records.value().empty() || !seen_ends(states)) quiet_since = clock.now();
    if (records.value().empty() && (at_end(states) || clock.now() - quiet_since > quiet_most)) break;
  }
  return ok();
}

std::string peek_group(const std::string& job) {
  return job.empty() ? "" : "rivulet." + job + ".peek";
}

Result<int> partitions_in(const stream::Properties& properties, const std::string& topic) {
  return stream::partition_count(properties, topic, broker_deadline);
}

}  // namespace rivulet::runtime::cli
