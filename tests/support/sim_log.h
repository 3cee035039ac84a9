#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/clock.h"
#include "core/log.h"
#include "tests/support/sim_faults.h"
#include "tests/support/sim_power.h"

namespace rivulet::testing {

/// What becomes of the next record that a device appends.
struct RecordFate {
  bool lost = false;
  Duration later{};  ///< others get before it
  Duration again{};  ///< zero: written once
};

/// What a reader is told whose next record was deleted.
inline constexpr const char* next_is_gone = "what comes next in the simulated log was deleted";

/// The job's control log as a broker that is slow, away, or loses and repeats records: one order, which every
/// device reads late, and that may lose its oldest records. Owner: the thread of the simulation.
class SimLog {
 public:
  explicit SimLog(std::size_t devices) : devices_(devices + 1) {}
  /// Sees each record when it has its place in the log.
  void watch(std::function<void(const LogEntry&)> watcher) { watcher_ = std::move(watcher); }
  /// Sees each record when a device says it.
  void listen(std::function<void(std::span<const std::byte>)> listener) { listener_ = std::move(listener); }
  /// The end of one device's process; `clock` and `power` are the device's.
  std::unique_ptr<OrderedLog> open(std::size_t device, const Clock& clock, SimPower& power);

  /// A record of a person who stands beside the group.
  void append_beside(TimePoint now, std::span<const std::byte> bytes) {
    append(devices_.size() - 1, now, bytes);
  }

  /// Records that are due get their places.
  void advance(TimePoint now);
  void next_fate(std::size_t device, const RecordFate& fate) { devices_[device].fate = fate; }
  void stay_away(std::size_t device, TimePoint until) { devices_[device].away_until = until; }
  /// Its process is gone, and with it what it had not sent.
  void forget_unsent(std::size_t device, TimePoint now);
  void heal();
  /// Offsets that hold nothing, as marks of transactions: the next record comes so much further on.
  void leave_out(std::int64_t offsets) {
    next_offset_ += offsets;
    faults_.count(SimFault::offsets_left_out);
  }
  /// Its oldest records are gone, all but `before` of those below `offset` and what comes then.
  void behead(std::int64_t offset, std::size_t before);
  /// Records, and calls of readers, that something has happened to.
  [[nodiscard]] const SimFaultCounts& faults() const noexcept { return faults_; }

  static constexpr Duration way = std::chrono::milliseconds(2);  ///< to the broker, and from it

 private:
  class End;
  struct Device {
    RecordFate fate;
    TimePoint away_until{};
  };
  struct Flight {
    TimePoint sent{};
    TimePoint arrives{};
    std::size_t device = 0;
    std::vector<std::byte> bytes;
  };
  struct Entry {
    std::int64_t offset = 0;
    TimePoint at{};
    std::vector<std::byte> bytes;
  };
  [[nodiscard]] std::deque<Entry>::const_iterator from(std::int64_t offset) const;
  void append(std::size_t device, TimePoint now, std::span<const std::byte> bytes);

  std::vector<Device> devices_;
  std::vector<Flight> flights_;  ///< in the order in which they were appended
  std::deque<Entry> entries_;    ///< by offset
  std::int64_t next_offset_ = 0;
  std::int64_t gone_below_ = 0;  ///< behind the last record that is gone
  SimFaultCounts faults_;
  std::function<void(const LogEntry&)> watcher_ = [](const LogEntry&) {};
  std::function<void(std::span<const std::byte>)> listener_ = [](std::span<const std::byte>) {};
};

}  // namespace rivulet::testing
