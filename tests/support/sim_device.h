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

/// What simulated devices have in common.
struct SimWorld {
  runtime::SimRunner& runner;
  SimLog& log;
  SimWires& wires;
  SimReferee& referee;
  runtime::LoadedConfig job;
  sync::membership::Rules rules;
  Duration disk_time{};  ///< what a checkpoint takes
  std::uint64_t seed = 0;
  SimStreams& streams;
  /// Lets something happen, so much later.
  std::function<void(Duration after, std::function<void()> action)> later;
  SimFaultCounts faults{};  ///< of processes
};

/// One device through all its lives: its disk, its place in the network, and, while it is up, its node.
/// Owner: the thread of the simulation.
class SimDevice {
 public:
  SimDevice(SimWorld& world, std::size_t index);
  ~SimDevice();
  SimDevice(const SimDevice&) = delete;
  SimDevice& operator=(const SimDevice&) = delete;

  /// A process begins, from what the disk has. Nothing if one is running.
  void start();
  struct Crash {
    Duration away{};                    ///< until it is started again
    std::optional<std::uint64_t> seed;  ///< power is lost, too: for what the disk keeps
  };
  /// It dies after N more effects on the world, at the latest in a while. Every crash that is asked for
  /// comes: while another one is due, or nothing runs, it is for the next life.
  void crash_after(int effects, const Crash& crash);
  /// The same, after N more calls on its disk.
  void crash_saving(int calls, const Crash& crash);
  [[nodiscard]] bool will_crash() const noexcept { return !planned_.empty(); }
  /// Whatever else is planned.
  void crash_now(const Crash& crash);
  /// As SIGTERM; started again so much later.
  void stop(Duration away);
  /// The job is being stopped: when it has ended, it is started again so much later.
  void expect_end(Duration away) { away_ = away; }
  /// From the next start on it is started with --new-run, until it has been in a view, or it says that it
  /// should not.
  void want_new_run() { new_run_ = true; }

  [[nodiscard]] bool up() const noexcept { return node_ != nullptr; }
  [[nodiscard]] bool trains_in(std::uint64_t view) const;
  /// In its memory is a state that is not older, or its disk has the whole file of one, as the disk knows it.
  [[nodiscard]] bool has(const Stamp& stamp) const;
  [[nodiscard]] const runtime::Node& node() const { return *node_; }
  SimDisk& disk() noexcept { return disk_; }
  [[nodiscard]] std::uint64_t lives() const noexcept { return lives_; }

 private:
  class Loop;
  struct Agents;
  struct Planned {
    int effects = 0;
    bool on_disk = false;  ///< only these count
    Crash crash;
  };
  void plan(const Planned& planned);
  void arm();
  [[nodiscard]] runtime::NodeDependencies outside();
  bool make_ready_for_run();
  void build_node();
  void take_advice(const Error& error);
  runtime::Turn step(runtime::Turn turn);
  runtime::Turn train();
  runtime::Turn save();
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
  std::deque<Planned> planned_;  ///< the first one is for this life
  std::uint64_t crashes_ = 0;    ///< of those that were planned
  Duration away_{};              ///< after a stop
  bool new_run_ = false;
  std::uint64_t run_ = 0;  ///< in which it was in a view last
  Stamp seen_;             ///< last shown to the referee
  std::uint64_t view_ = 0;
  std::optional<TimePoint> saved_at_;  ///< when the disk is done
};

/// What its supervisor waits after a process ended with an error.
inline constexpr Duration sim_started_again_after = std::chrono::seconds(1);
inline constexpr const char* sim_folder = "/checkpoints";

}  // namespace rivulet::testing
