#include "runtime/ingest/truncation.h"

#include <algorithm>
#include <utility>

namespace rivulet::runtime {
namespace {

constexpr double seconds_kept = 1;  ///< seconds of the stream (ScaDLES: its tick)

}  // namespace

Truncation::Truncation(Retention retention, std::size_t largest_batch, std::size_t capacity)
    : retention_(retention), least_(std::min(largest_batch, capacity)), capacity_(capacity), keep_(least_) {}

void Truncation::follow(const stream::RecordSource& source, TimePoint now) {
  if (is_off()) return;
  std::int64_t end = 0;
  std::size_t known = 0;
  for (const stream::PartitionState& partition : source.partitions()) {
    if (partition.high_watermark < 0) continue;  // unknown yet
    end += partition.high_watermark;
    ++known;
  }
  if (std::exchange(growing_, known) != known) growth_ = stream::GrowthEstimate();
  growth_.reached(end, now);
  const auto of_stream = static_cast<std::size_t>(seconds_kept * growth_.per_second(now));
  keep_ = std::clamp(of_stream, least_, capacity_);
}

std::size_t Truncation::room(std::size_t most, std::size_t waiting, std::size_t free) const {
  switch (retention_) {
    case Retention::truncate_newest: return most;
    case Retention::truncate_oldest: return waiting < keep_ ? most : 0;
    case Retention::persist: break;
  }
  return std::min(most, free);
}

bool Truncation::drops(const Record& record, std::size_t waiting, const stream::RecordSource& source) const {
  if (is_off()) return false;
  if (retention_ == Retention::truncate_newest) return waiting >= keep_;
  for (const stream::PartitionState& partition : source.partitions())
    if (partition.id == record.partition)
      return partition.high_watermark - record.offset >
             static_cast<std::int64_t>(keep_ - std::min(keep_, waiting));
  return false;
}

}  // namespace rivulet::runtime
