#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace rivulet::testing {

/// Faults of a simulated group, counted when they take effect: a scheduled one may find nothing to do (no
/// message on a blocked link, nothing unsynced at a power loss).
enum class SimFault : std::uint8_t {
  crash_at_once,
  crash_inside,    ///< between two effects on the world
  crash_saving,    ///< between two disk calls
  crash_starting,  ///< before its node existed
  crash_at_last,   ///< after a timeout with too few effects
  power_lost,
  stopped,
  given_up,  ///< a process ended with an error
  job_stopped,
  new_run,
  frozen,
  silence,  ///< a poll of a stream without data
  rows_deleted,
  message_slow,
  message_delayed,
  message_overtaken,
  message_muted,
  blocked_one_way,
  blocked_both_ways,
  connection_broken,
  no_connection,
  record_lost,
  record_repeated,
  record_late,
  record_overtaken,
  record_unsent,  ///< lost with its process
  broker_away,
  offsets_left_out,
  log_beheaded,
  next_record_gone,  ///< for a reader
  bytes_lost,
  bytes_torn,
  bytes_blank,
  name_lost,
  names_apart,  ///< a later change of a name is durable, an earlier one is not
  disk_full,
  disk_failed,
  disk_unreadable,
  bit_rotten,
  disk_wiped,
  copy_taken,   ///< not a fault: a device joins with a copied state
  copy_failed,  ///< its donor or the view went away, or the connection broke
  count
};
constexpr std::size_t sim_faults = static_cast<std::size_t>(SimFault::count);
/// In the order of SimFault.
inline constexpr std::array<const char*, sim_faults> sim_fault_names = {"crash_at_once",
                                                                        "crash_inside",
                                                                        "crash_saving",
                                                                        "crash_starting",
                                                                        "crash_at_last",
                                                                        "power_lost",
                                                                        "stopped",
                                                                        "given_up",
                                                                        "job_stopped",
                                                                        "new_run",
                                                                        "frozen",
                                                                        "silence",
                                                                        "rows_deleted",
                                                                        "message_slow",
                                                                        "message_delayed",
                                                                        "message_overtaken",
                                                                        "message_muted",
                                                                        "blocked_one_way",
                                                                        "blocked_both_ways",
                                                                        "connection_broken",
                                                                        "no_connection",
                                                                        "record_lost",
                                                                        "record_repeated",
                                                                        "record_late",
                                                                        "record_overtaken",
                                                                        "record_unsent",
                                                                        "broker_away",
                                                                        "offsets_left_out",
                                                                        "log_beheaded",
                                                                        "next_record_gone",
                                                                        "bytes_lost",
                                                                        "bytes_torn",
                                                                        "bytes_blank",
                                                                        "name_lost",
                                                                        "names_apart",
                                                                        "disk_full",
                                                                        "disk_failed",
                                                                        "disk_unreadable",
                                                                        "bit_rotten",
                                                                        "disk_wiped",
                                                                        "copy_taken",
                                                                        "copy_failed"};

class SimFaultCounts {
 public:
  void count(SimFault fault) noexcept { ++counts_[static_cast<std::size_t>(fault)]; }
  [[nodiscard]] std::uint64_t of(SimFault fault) const noexcept {
    return counts_[static_cast<std::size_t>(fault)];
  }
  void add(const SimFaultCounts& others) noexcept {
    for (std::size_t i = 0; i < sim_faults; ++i) counts_[i] += others.counts_[i];
  }

 private:
  std::array<std::uint64_t, sim_faults> counts_{};
};

}  // namespace rivulet::testing
