#include "stream/kafka/same_log.h"

#include <librdkafka/rdkafka.h>

#include <utility>

namespace rivulet::stream::kafka {
namespace {

constexpr Duration look_lasts = std::chrono::seconds(5);
constexpr Duration look_pause = std::chrono::milliseconds(500);

}  // namespace

SameLog::SameLog(Setup setup, const Clock& clock)
    : setup_(std::move(setup)), clock_(clock), file_(setup_.file), memories_(setup_.partitions.size()) {}

void SameLog::recall(std::size_t slot) {
  memories_[slot].good = file_.read(setup_.partitions)[slot];
  memories_[slot].doubted = true;
}

void SameLog::doubt(std::size_t slot) {
  memories_[slot].doubted = true;
}

/// A third longer than the time between looks, so that a stream that flows never waits for one.
bool SameLog::is_fresh(const Memory& memory, TimePoint now) const {
  return !memory.doubted && now < memory.looked + setup_.every + setup_.every / 3;
}

bool SameLog::trusts(std::size_t slot) {
  Memory& memory = memories_[slot];
  if (!enabled_ || !memory.good) return true;
  const TimePoint now = clock_.now();
  if (is_fresh(memory, now)) return true;
  if (!memory.held_since) memory.held_since = now;
  holds_ = now - *memory.held_since < setup_.hold_at_most;
  return !holds_;
}

void SameLog::passed(std::size_t slot, const rd_kafka_message_s& message) {
  if (!enabled_) return;
  Memory& memory = memories_[slot];
  memory.newest = anchor_of(message);
  if (memory.good) return;
  memory.good = memory.newest;
  memory.looked = clock_.now();
  memory.doubted = false;
  save();
}

std::optional<std::size_t> SameLog::serve(Duration wait) {
  if (!enabled_) return std::nullopt;
  const TimePoint now = clock_.now();
  if (!probe_) begin_look(now);
  if (!probe_) return std::nullopt;
  std::optional<std::size_t> other;
  if (const auto answer = probe_->poll(holds_ ? wait : Duration(0))) other = take_answer(*answer, now);
  if (probe_->done() || now >= probe_ends_) end_look(now);
  return other;
}

void SameLog::begin_look(TimePoint now) {
  if (now < next_look_) return;
  std::vector<LogProbe::Question> questions;
  for (std::size_t slot = 0; slot < memories_.size(); ++slot) {
    Memory& memory = memories_[slot];
    if (!memory.good || memory.other) continue;
    const bool moved = memory.newest && memory.newest != memory.good;
    const bool due = now >= memory.looked + (moved ? setup_.every : 2 * setup_.every);
    if (!due && !memory.held_since) continue;
    memory.next = memory.newest;
    questions.push_back({slot, setup_.partitions[slot], *memory.good});
  }
  if (questions.empty()) return;
  next_look_ = now + look_pause;
  auto probe = LogProbe::ask(setup_.properties, setup_.group_id, std::move(questions));
  if (!probe) return;  // the reader's own client has reported why
  probe_ = std::move(probe).value();
  probe_ends_ = now + look_lasts;
}

/// What was handed out before a look that finds the old record came out of the same log.
std::optional<std::size_t> SameLog::take_answer(const LogProbe::Answer& answer, TimePoint now) {
  Memory& memory = memories_[answer.slot];
  memory.held_since.reset();
  memory.looked = now;
  memory.doubted = false;
  if (answer.finding == LogProbe::Finding::other) {
    memory.other = true;
    return answer.slot;
  }
  if (answer.finding == LogProbe::Finding::gone || memory.next) memory.good = std::exchange(memory.next, {});
  return std::nullopt;
}

void SameLog::end_look(TimePoint now) {
  probe_.reset();
  next_look_ = now + look_pause;
  holds_ = false;
  save();
}

void SameLog::save() {
  std::vector<std::optional<Anchor>> anchors;
  anchors.reserve(memories_.size());
  for (const Memory& memory : memories_) anchors.push_back(memory.good);
  if (auto written = file_.write(setup_.partitions, anchors); !written) complaint_ = written.error();
}

std::int64_t SameLog::anchor_offset(std::size_t slot) const {
  return memories_[slot].good ? memories_[slot].good->offset : -1;
}

std::optional<Error> SameLog::take_complaint() {
  return std::exchange(complaint_, std::nullopt);
}

}  // namespace rivulet::stream::kafka
