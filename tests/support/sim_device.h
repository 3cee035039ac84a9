#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/node/node.h"
#include "runtime/wiring/sim_runner.h"
#include "tests/support/sim_disk.h"
#include "tests/support/sim_log.h"
#include "tests/support/sim_referee.h"
#include "tests/support/sim_rows.h"
#include "tests/support/sim_wires.h"

namespace rivulet::testing {

/// Shared by all simulated devices.
struct SimWorld {
  runtime::SimRunner& runner;
  SimLog& log;
  SimWires& wires;
  SimReferee& referee;
  runtime::LoadedConfig job;
  sync::membership::Rules rules;
  Duration disk_time{};  ///< of a checkpoint
  std::uint64_t seed = 0;
  SimStreams& streams;
  /// Schedules an action.
  std::function<void(Duration after, std::function<void()> action)> later;
  std::size_t copies_above = std::size_t{1} << 20U;  ///< see CopyDependencies
  SimFaultCounts faults{};                           ///< of processes
};

/// One device across restarts: its disk, its place in the network, and its node while it runs. Owner: the
/// simulation's thread.
class SimDevice {
 public:
  SimDevice(SimWorld& world, std::size_t index);
  ~SimDevice();
  SimDevice(const SimDevice&) = delete;
  SimDevice& operator=(const SimDevice&) = delete;

  /// Starts a process from the contents of the disk. No effect while one is running.
  void start();
  struct Crash {
    Duration away{};                    ///< until the restart
    std::optional<std::uint64_t> seed;  ///< of the power loss, which also affects the disk
  };
  /// Crashes after N more effects on the world, at the latest after a timeout. Every requested crash occurs:
  /// while another is pending or nothing runs, it applies to the next process.
  void crash_after(int effects, const Crash& crash);
  /// The same, after N more disk calls.
  void crash_saving(int calls, const Crash& crash);
  [[nodiscard]] bool will_crash() const noexcept { return !planned_.empty(); }
  /// Crashes regardless of other plans.
  void crash_now(const Crash& crash);
  /// As SIGSTOP, followed by SIGCONT: its connections stay open.
  void freeze(Duration time);
  /// As SIGTERM; restarts after `away`.
  void stop(Duration away);
  /// The job is being stopped: restarts after `away` once it has ended.
  void expect_end(Duration away) { away_ = away; }
  /// Starts with --new-run from the next start on, until it has been in a view or the device rejects it.
  void want_new_run() { new_run_ = true; }

  [[nodiscard]] bool up() const noexcept { return node_ != nullptr; }
  [[nodiscard]] bool trains_in(std::uint64_t view) const;
  /// True if a state that is not older is in memory, or durably on disk as a whole file.
  [[nodiscard]] bool has(const Stamp& stamp) const;
  [[nodiscard]] const runtime::Node& node() const { return *node_; }
  SimDisk& disk() noexcept { return disk_; }
  [[nodiscard]] std::uint64_t lives() const noexcept { return lives_; }

 private:
  class Loop;
  struct Agents;
  struct Planned {
    int effects = 0;
    bool on_disk = false;  ///< requires the disk
    Crash crash;
  };
  void plan(const Planned& planned);
  void arm();
  [[nodiscard]] runtime::NodeDependencies outside();
  bool make_ready_for_run();
  void build_node();
  void take_advice(const Error& error);
  runtime::Turn step(runtime::Turn turn);
  [[nodiscard]] bool is_frozen() const { return world_.runner.now() < frozen_until_; }
  runtime::Turn read();
  runtime::Turn train();
  runtime::Turn save();
  runtime::Turn give();
  void look();
  static bool may_end_for(const Error& error);
  void ended();
  void end_process();
  void crash_as_planned(SimFault how);
  void die(const Crash& crash, SimFault how);
  void start_later(Duration after);

  SimWorld& world_;
  const std::size_t index_;
  runtime::LoadedConfig job_;
  SimPower power_;
  SimDisk disk_{power_};
  NullMetrics metrics_;
  std::unique_ptr<runtime::Logger> log_;
  std::unique_ptr<Agents> agents_;
  std::unique_ptr<devices::Device> host_;
  runtime::StopRequest stop_{0};
  std::unique_ptr<runtime::Node> node_;
  std::uint64_t lives_ = 0;
  std::deque<Planned> planned_;  ///< the first applies to this process
  std::uint64_t crashes_ = 0;    ///< of the planned ones
  Duration away_{};              ///< after a stop
  TimePoint frozen_until_{};
  bool new_run_ = false;
  std::uint64_t run_ = 0;  ///< of its last view
  Stamp seen_;             ///< last shown to the referee
  std::uint64_t failed_copies_ = 0;
  std::uint64_t view_ = 0;
  std::optional<TimePoint> saved_at_;  ///< when the disk write ends
};

/// Restart delay of its supervisor after an error.
inline constexpr Duration sim_started_again_after = std::chrono::seconds(1);
inline constexpr const char* sim_folder = "/checkpoints";

}  // namespace rivulet::testing
