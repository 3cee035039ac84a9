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

/// Fate of the next record that a device appends.
struct RecordFate {
  bool lost = false;
  Duration later{};  ///< delay; others overtake it
  Duration again{};  ///< delay of a duplicate; zero: none
};

/// The error of a reader whose next record was deleted.
inline constexpr const char* next_is_gone = "the next record of the simulated log was deleted";

/// The job's control log, from a broker that is slow, unreachable, or loses and duplicates records. It has
/// one order, which every device reads with a delay, and may lose its oldest records. Owner: the simulation's
/// thread.
class SimLog {
 public:
  explicit SimLog(std::size_t devices) : devices_(devices + 1) {}
  /// Called for each record when it has its place in the log.
  void watch(std::function<void(const LogEntry&)> watcher) { watcher_ = std::move(watcher); }
  /// Called for each record when a device appends it.
  void listen(std::function<void(std::span<const std::byte>)> listener) { listener_ = std::move(listener); }
  /// The log as opened by one device's process; `clock` and `power` are the device's.
  std::unique_ptr<OrderedLog> open(std::size_t device, const Clock& clock, SimPower& power);

  /// A record from outside the group, such as an operator's STOP.
  void append_beside(TimePoint now, std::span<const std::byte> bytes) {
    append(devices_.size() - 1, now, bytes);
  }

  /// Gives due records their places.
  void advance(TimePoint now);
  void next_fate(std::size_t device, const RecordFate& fate) { devices_[device].fate = fate; }
  void stay_away(std::size_t device, TimePoint until) { devices_[device].away_until = until; }
  /// Drops the unsent records of an ended process.
  void forget_unsent(std::size_t device, TimePoint now);
  void heal();
  /// Skips offsets, as transaction markers do.
  void leave_out(std::int64_t offsets) {
    next_offset_ += offsets;
    faults_.count(SimFault::offsets_left_out);
  }
  /// Deletes its oldest records below `offset`, except the last `before`.
  void behead(std::int64_t offset, std::size_t before);
  /// Faults of records and of readers' calls.
  [[nodiscard]] const SimFaultCounts& faults() const noexcept { return faults_; }

  static constexpr Duration way = std::chrono::milliseconds(2);  ///< to and from the broker

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
  std::vector<Flight> flights_;  ///< in append order
  std::deque<Entry> entries_;    ///< by offset
  std::int64_t next_offset_ = 0;
  std::int64_t gone_below_ = 0;  ///< first offset that was not deleted
  SimFaultCounts faults_;
  std::function<void(const LogEntry&)> watcher_ = [](const LogEntry&) {};
  std::function<void(std::span<const std::byte>)> listener_ = [](std::span<const std::byte>) {};
};

}  // namespace rivulet::testing
