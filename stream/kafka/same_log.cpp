#include "stream/kafka/same_log.h"

#include <librdkafka/rdkafka.h>

#include <utility>

namespace rivulet::stream::kafka {
namespace {

constexpr Duration look_lasts = std::chrono::seconds(5);
constexpr Duration look_pause = std::chrono::milliseconds(500);

}  // namespace

SameLog::SameLog(Setup setup, const Clock& clock, Partitions& partitions)
    : setup_(std::move(setup)), clock_(clock), partitions_(partitions), file_(setup_.file) {}

void SameLog::recall(Partition& partition) {
  partition.log.good = file_.read(partition.name());
  partition.log.doubted = true;
}

/// A third longer than the interval between checks, so that a steady stream never waits for one.
bool SameLog::is_fresh(const LogMemory& memory, TimePoint now) const {
  return !memory.doubted && now < memory.looked + setup_.every + setup_.every / 3;
}

bool SameLog::trusts(Partition& partition) {
  LogMemory& memory = partition.log;
  if (!enabled_ || !memory.good) return true;
  const TimePoint now = clock_.now();
  if (is_fresh(memory, now)) return true;
  if (!memory.deferred_since) memory.deferred_since = now;
  defers_ = now - *memory.deferred_since < setup_.defer_max;
  return !defers_;
}

void SameLog::passed(Partition& partition, const rd_kafka_message_s& message) {
  if (!enabled_) return;
  LogMemory& memory = partition.log;
  memory.newest = anchor_of(message);
  if (memory.good) return;
  memory.good = memory.newest;
  memory.looked = clock_.now();
  memory.doubted = false;
  save();
}

Partition* SameLog::serve(Duration wait) {
  if (!enabled_) return nullptr;
  const TimePoint now = clock_.now();
  if (!probe_) begin_look(now);
  if (!probe_) return nullptr;
  Partition* other = nullptr;
  if (const auto answer = probe_->poll(defers_ ? wait : Duration(0))) other = take_answer(*answer, now);
  if (probe_->done() || now >= probe_ends_) end_look(now);
  return other;
}

void SameLog::begin_look(TimePoint now) {
  if (now < next_look_) return;
  std::vector<LogProbe::Question> questions;
  for (auto& [id, partition] : partitions_.all()) {
    LogMemory& memory = partition.log;
    if (!memory.good || memory.other) continue;
    const bool moved = memory.newest && memory.newest != memory.good;
    const bool due = now >= memory.looked + (moved ? setup_.every : 2 * setup_.every);
    if (!due && !memory.deferred_since) continue;
    memory.next = memory.newest;
    questions.push_back({partition.number(), partition.name(), *memory.good});
  }
  if (questions.empty()) return;
  next_look_ = now + look_pause;
  auto probe = LogProbe::query(setup_.properties, setup_.group_id, std::move(questions));
  if (!probe) return;  // the reader's own client has reported the error
  probe_ = std::move(probe).value();
  probe_ends_ = now + look_lasts;
}

/// If the check finds the old record, the records returned before it came from the same log.
Partition* SameLog::take_answer(const LogProbe::Answer& answer, TimePoint now) {
  Partition* partition = partitions_.find_number(answer.slot);
  if (partition == nullptr) return nullptr;  // dropped since the query
  LogMemory& memory = partition->log;
  memory.deferred_since.reset();
  memory.looked = now;
  memory.doubted = false;
  if (answer.finding == LogProbe::Finding::other) {
    memory.other = true;
    return partition;
  }
  if (answer.finding == LogProbe::Finding::gone || memory.next) memory.good = std::exchange(memory.next, {});
  return nullptr;
}

void SameLog::end_look(TimePoint now) {
  probe_.reset();
  next_look_ = now + look_pause;
  defers_ = false;
  save();
}

void SameLog::save() {
  std::vector<AnchorFile::Entry> anchors;
  for (const auto& [id, partition] : partitions_.all())
    if (partition.log.good) anchors.push_back({partition.name(), *partition.log.good});
  if (auto written = file_.write(anchors); !written) problem_ = written.error();
}

std::optional<Error> SameLog::take_problem() {
  return std::exchange(problem_, std::nullopt);
}

}  // namespace rivulet::stream::kafka
