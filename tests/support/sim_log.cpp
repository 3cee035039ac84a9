#include "tests/support/sim_log.h"

#include <algorithm>
#include <utility>

namespace rivulet::testing {
namespace {

/// The timestamp that the broker adds to a record.
std::int64_t written_ms(TimePoint at) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count();
}

}  // namespace

class SimLog::End final : public OrderedLog {
 public:
  End(SimLog& log, std::size_t device, const Clock& clock, SimPower& power)
      : log_(log), device_(device), clock_(clock), power_(power), existed_(log.next_offset_) {}

  Status append(std::span<const std::byte> bytes) override {
    if (power_.take()) log_.append(device_, clock_.now(), bytes);
    return ok();
  }
  Result<std::span<const LogEntry>> poll(std::size_t max_entries) override {
    entries_.clear();
    const TimePoint now = clock_.now();
    log_.advance(now);
    if (now < log_.devices_[device_].away_until) {
      log_.faults_.count(SimFault::broker_away);
      return Error{ErrorCode::source_lost, "the simulated broker is away"};
    }
    if (next_ > 0 && next_ < log_.gone_below_) {
      log_.faults_.count(SimFault::next_record_gone);
      return Error{ErrorCode::bad_record, next_is_gone};
    }
    for (auto at = log_.from(next_); at != log_.entries_.end() && entries_.size() < max_entries; ++at) {
      if (at->at + way > now) break;
      entries_.push_back({at->offset, written_ms(at->at), at->bytes});
      next_ = at->offset + 1;
    }
    return std::span<const LogEntry>(entries_);
  }
  [[nodiscard]] bool caught_up() const override { return log_.from(next_) == log_.from(existed_); }

 private:
  SimLog& log_;
  const std::size_t device_;
  const Clock& clock_;
  SimPower& power_;
  const std::int64_t existed_;
  std::int64_t next_ = 0;
  std::vector<LogEntry> entries_;
};

std::unique_ptr<OrderedLog> SimLog::open(std::size_t device, const Clock& clock, SimPower& power) {
  return std::make_unique<End>(*this, device, clock, power);
}

void SimLog::append(std::size_t device, TimePoint now, std::span<const std::byte> bytes) {
  listener_(bytes);
  Device& from = devices_[device];
  const RecordFate fate = std::exchange(from.fate, {});
  if (fate.lost) return faults_.count(SimFault::record_lost);
  if (fate.later > Duration::zero()) faults_.count(SimFault::record_late);
  const TimePoint sent = std::max(now, from.away_until);
  Flight flight{sent, sent + way + fate.later, device, {bytes.begin(), bytes.end()}};
  flights_.push_back(flight);
  if (fate.again == Duration::zero()) return;
  faults_.count(SimFault::record_repeated);
  flight.arrives += fate.again;
  flights_.push_back(std::move(flight));
}

void SimLog::advance(TimePoint now) {
  while (true) {
    const auto next = std::min_element(flights_.begin(), flights_.end(),
                                       [](const auto& a, const auto& b) { return a.arrives < b.arrives; });
    if (next == flights_.end() || next->arrives > now) return;
    if (next != flights_.begin()) faults_.count(SimFault::record_overtaken);
    entries_.push_back({next_offset_++, next->arrives, std::move(next->bytes)});
    flights_.erase(next);
    const Entry& entry = entries_.back();
    watcher_({entry.offset, written_ms(entry.at), entry.bytes});
  }
}

std::deque<SimLog::Entry>::const_iterator SimLog::from(std::int64_t offset) const {
  return std::lower_bound(entries_.begin(), entries_.end(), offset,
                          [](const Entry& entry, std::int64_t at) { return entry.offset < at; });
}

void SimLog::behead(std::int64_t offset, std::size_t before) {
  const auto below = static_cast<std::size_t>(from(offset) - entries_.cbegin());
  if (before < below) faults_.count(SimFault::log_beheaded);
  for (std::size_t i = before; i < below; ++i) {
    gone_below_ = entries_.front().offset + 1;
    entries_.pop_front();
  }
}

void SimLog::forget_unsent(std::size_t device, TimePoint now) {
  const auto gone = std::erase_if(
      flights_, [&](const Flight& flight) { return flight.device == device && flight.sent > now; });
  if (gone > 0) faults_.count(SimFault::record_unsent);
}

void SimLog::heal() {
  for (Device& device : devices_) device = {};
}

}  // namespace rivulet::testing
