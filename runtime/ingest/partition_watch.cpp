#include "runtime/ingest/partition_watch.h"

#include <algorithm>

#include "runtime/process/topic_name.h"

namespace rivulet::runtime {
namespace {

const char* state_name(const stream::PartitionState& state) {
  if (!state.stopped.empty()) return "stopped";
  if (!state.unreached.empty()) return "unreachable";
  if (state.next_offset < 0) return "opening";
  return state.paused ? "paused" : "reading";
}

/// Transactions are short, unless their producer died or forgot to end them.
constexpr Duration transaction_patience = std::chrono::seconds(20);

std::string why_no_records(const stream::PartitionState& state) {
  if (!state.stopped.empty()) return state.stopped;
  if (!state.unreached.empty() || state.blocked_from < 0) return state.unreached;
  return "an open transaction blocks " + std::to_string(state.high_watermark - state.blocked_from) +
         " records from offset " + std::to_string(state.blocked_from) + " on";
}

/// -1 if unknown: an unreachable log may have grown.
std::int64_t lag_of(const stream::RecordSource& source) {
  if (!source.unreachable().empty()) return -1;
  std::int64_t lag = 0;
  for (const auto& p : source.partitions()) {
    if (p.high_watermark < 0 || p.next_offset < 0 || !p.unreached.empty()) return -1;
    // Records behind an open transaction cannot be read yet.
    const std::int64_t end =
        p.blocked_from >= 0 ? std::min(p.blocked_from, p.high_watermark) : p.high_watermark;
    lag += std::max<std::int64_t>(end - p.next_offset, 0);  // stopped beyond the end: none
  }
  return lag;
}

}  // namespace

void PartitionWatch::look(const stream::RecordSource& source, TimePoint now) {
  status_.lag_records = lag_of(source);
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(500);
  status_.look_back(now);
  const auto states = source.partitions();
  std::erase_if(reported_, [&](const auto& one) {
    return std::ranges::find(states, one.first, &stream::PartitionState::id) == states.end();
  });
  std::vector<PartitionStatus> page;
  page.reserve(states.size());
  for (const auto& state : states) {
    report(state, reported_[state.id], now);
    page.push_back({topic_of(state.id, topics_), state.id.partition, state_name(state), state.next_offset,
                    state.low_watermark, state.high_watermark, state.skipped, why_no_records(state)});
  }
  status_.set_partitions(std::move(page));
  status_.set_source_trouble(std::string(source.unreachable()));
  const bool all = !states.empty() && std::all_of(states.begin(), states.end(),
                                                  [](const auto& state) { return !state.stopped.empty(); });
  if (all && !reported_all_stopped_)
    log_.write(Level::error,
               "every partition of this device is stopped: the device stays in the group without rows");
  reported_all_stopped_ = all;
}

void PartitionWatch::report(const stream::PartitionState& state, Reported& reported, TimePoint now) {
  if (state.skipped > reported.skipped) {
    Fields fields = place_of(state);
    fields.emplace_back("offsets", std::to_string(state.skipped - reported.skipped));
    log_.write(Level::warn, "offsets deleted before they were read are skipped (source.on_gap = \"count\")",
               fields);
  }
  if (state.stopped != reported.stopped) {
    if (state.stopped.empty())
      log_.write(Level::info, "a stopped partition is read again", place_of(state));
    else
      log_.write(Level::error, state.stopped, place_of(state));
  }
  if (state.unreached.empty() != reported.unreached.empty()) {
    if (state.unreached.empty())
      log_.write(Level::info, "the leader of a partition answers again", place_of(state));
    else
      log_.write(Level::warn, state.unreached, place_of(state));
  }
  reported.unreached = state.unreached;
  reported.stopped = state.stopped;
  reported.skipped = state.skipped;
  report_transaction(state, reported, now);
  report_silence(state, reported, now);
}

void PartitionWatch::report_transaction(const stream::PartitionState& state, Reported& reported,
                                        TimePoint now) {
  if (state.blocked_from != reported.blocked_from) {
    if (reported.blocked)
      log_.write(Level::info, "the transaction has ended: records arrive again", place_of(state));
    reported.blocked_from = state.blocked_from;
    reported.blocked_since = now;
    reported.blocked = false;
  }
  if (reported.blocked_from < 0 || reported.blocked || now - reported.blocked_since < transaction_patience)
    return;
  reported.blocked = true;
  log_.write(Level::warn, why_no_records(state) + ": the producer that began it must commit or abort it",
             place_of(state));
}

/// Reports each silence once, at growing intervals: slow streams are normal.
void PartitionWatch::report_silence(const stream::PartitionState& state, Reported& reported, TimePoint now) {
  constexpr Duration longest = std::chrono::hours(1);
  if (state.next_offset != reported.next_offset) {
    if (reported.silent) reported.patience = std::min(2 * reported.patience, longest);
    reported.next_offset = state.next_offset;
    reported.moved_at = now;
    reported.silent = false;
  }
  const bool at_end = state.next_offset >= 0 && state.high_watermark == state.next_offset &&
                      state.stopped.empty() && state.unreached.empty() && state.blocked_from < 0;
  if (!at_end || reported.silent || now - reported.moved_at < reported.patience) return;
  reported.silent = true;
  log_.write(Level::info, "no more records: all records of the partition are read, and no new ones arrive",
             place_of(state));
}

Fields PartitionWatch::place_of(const stream::PartitionState& state) const {
  return {{"topic", topic_of(state.id, topics_)},
          {"partition", std::to_string(state.id.partition)},
          {"offset", std::to_string(state.next_offset)},
          {"low", std::to_string(state.low_watermark)},
          {"high", std::to_string(state.high_watermark)}};
}

}  // namespace rivulet::runtime
