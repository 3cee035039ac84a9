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
  source.topics = {reading.topic};
  return source;
}

using States = std::span<const stream::PartitionState>;

bool seen_end(const stream::PartitionState& p) {
  return p.high_watermark >= 0;
}

/// End offset of each partition when it was first known; -1 if not known yet. Reading does not wait for later
/// records, since a live topic has no end.
using Ends = std::vector<std::int64_t>;

void note_ends(States states, Ends& ends) {
  ends.resize(states.size(), -1);
  for (std::size_t i = 0; i < states.size(); ++i)
    if (ends[i] < 0) ends[i] = states[i].high_watermark;
}

/// Considers only partitions with a known end.
bool at_end(States states, const Ends& ends) {
  for (std::size_t i = 0; i < states.size(); ++i) {
    const auto& p = states[i];
    if (ends[i] >= 0 && p.next_offset < ends[i] && p.blocked_from < 0 && p.stopped.empty()) return false;
  }
  return true;
}

/// Seeks back from the end by the requested number of records, so that "latest" shows existing ones.
Status rewind(stream::RecordSource& source, std::uint64_t records) {
  const States states = source.partitions();
  const auto seen = std::max<std::ptrdiff_t>(std::ranges::count_if(states, seen_end), 1);
  const auto each = (static_cast<std::int64_t>(records) + seen - 1) / seen;
  Assignment there;
  for (const auto& p : states) {
    auto& from = there.cursors[p.id];
    if (seen_end(p))
      from = RowCursor{std::max({p.high_watermark - each, p.low_watermark, std::int64_t{0}}), 0};
  }
  return source.assign(there);
}

/// Reports partitions that could not be read.
Status all_read(const std::string& topic, States states) {
  std::string why;
  for (const auto& p : states)
    if (!p.unreached.empty()) why += (why.empty() ? "" : "; ") + p.unreached;
  if (!why.empty()) return Error{ErrorCode::unavailable, why};
  if (std::ranges::all_of(states, seen_end)) return ok();
  return Error{ErrorCode::unavailable,
               fmt::format("no broker reported the end offsets of topic {} within 10 s", topic)};
}

/// One pass over a topic.
class Reading {
 public:
  Reading(const TopicReading& reading, stream::RecordSource& source)
      : reading_(reading),
        source_(source),
        began_(clock_.now()),
        now_(began_),
        quiet_since_(began_),
        rewound_(reading.start.kind != stream::StartOffset::Kind::latest) {}

  /// Returns true at the end.
  Result<bool> step(const std::function<bool(const Record&)>& use) {
    const auto polled = source_.poll(64, std::chrono::milliseconds(100));
    const bool lost = !polled && polled.error().code == ErrorCode::source_lost;
    if (!polled && (!lost || !source_.unreachable().empty())) return polled.error();
    const auto records = polled ? polled.value() : std::span<const Record>();
    now_ = clock_.now();
    if (!records.empty()) quiet_since_ = now_;
    if (!rewound_) return rewind_when_known();
    note_ends(source_.partitions(), ends_);
    for (const auto& record : records)
      if (!use(record)) return true;
    return is_over(records.empty());
  }

 private:
  /// Waits until the deadline for a broker that does not answer; then reads the other partitions.
  [[nodiscard]] bool waits() const {
    return !std::ranges::all_of(source_.partitions(), seen_end) && now_ < began_ + broker_deadline;
  }
  Result<bool> rewind_when_known() {
    if (waits()) return false;
    note_ends(source_.partitions(), ends_);
    rewound_ = true;
    quiet_since_ = now_;
    if (auto status = rewind(source_, reading_.records); !status) return status.error();
    return false;
  }
  Result<bool> is_over(bool empty) {
    if (waits()) return false;
    // The last offsets of a log may be transaction markers instead of records.
    const bool quiet = empty && now_ - quiet_since_ > quiet_most;
    if (!quiet && !at_end(source_.partitions(), ends_) && now_ < began_ + reading_.longest) return false;
    if (auto all = all_read(reading_.topic, source_.partitions()); !all) return all.error();
    return true;
  }

  const TopicReading& reading_;
  stream::RecordSource& source_;
  const RealClock clock_;
  const TimePoint began_;
  TimePoint now_;
  TimePoint quiet_since_;
  Ends ends_;
  bool rewound_;
};

}  // namespace

Status read_topic(const TopicReading& reading, const StopRequest& stop,
                  const std::function<bool(const Record&)>& use) {
  const RealClock clock;
  NullMetrics metrics;
  const auto opened = stream::open_kafka_source(source_of(reading), clock, metrics);
  if (!opened) return opened.error();
  Assignment all;
  for (const int p : reading.partitions) all.cursors[{0, p}] = std::nullopt;
  if (auto assigned = opened.value()->assign(all); !assigned) return assigned;
  Reading steps(reading, *opened.value());
  while (stop.load() == 0) {
    const auto done = steps.step(use);
    if (!done) return done.error();
    if (done.value()) break;
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
