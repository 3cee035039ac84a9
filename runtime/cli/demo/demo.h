#pragma once
#include <deque>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "runtime/cli/child.h"
#include "runtime/cli/command.h"
#include "runtime/cli/demo/demo_fate.h"
#include "runtime/cli/demo/demo_plan.h"
#include "runtime/cli/demo/elastic_script.h"
#include "runtime/cli/live_view.h"
#include "runtime/node/run.h"
#include "runtime/status/summary.h"
#include "runtime/train/progress.h"
#include "stream/open.h"

namespace rivulet::runtime::cli {

/// Results of the demo's processes.
struct DemoOutcome {
  Status played = ok();              ///< cancelled: stopped by a signal
  std::vector<Summary> summaries;    ///< summaries of the started devices
  std::vector<GroupChange> changes;  ///< of an elastic demo
  bool changes_complete = true;      ///< the group has continued from all of them
  /// End offsets of the partitions, queried after all devices exited.
  Result<std::vector<stream::LogEnds>> log_ends{std::vector<stream::LogEnds>{}};
  bool complete = true;  ///< all devices printed a summary; otherwise some are from the last page read
  double seconds = 0;    ///< time from the first process start to the last exit
};

/// Starts a broker, the devices and a feeder as separate processes, shows them, and stops all of them in
/// every case. Restarts a device that was killed. Owner: the main thread (children die with it).
class Demo {
 public:
  /// Sets `plan.brokers` once the embedded broker runs. `show`: stream for the live view.
  Demo(DemoPlan& plan, const Terminal& terminal, std::ostream& show, bool redraw, const StopRequest& stop);
  DemoOutcome play();

 private:
  Status play_to_the_end();
  [[nodiscard]] Result<std::vector<stream::LogEnds>> ends_of_logs() const;
  Status start_broker();
  Status start_devices();
  Status start_device(std::size_t device, double seconds);
  Status start_feeder_when_ready();
  Status watch();
  Status check_children();
  Error death_of(Child& child) const;
  // demo_restarts.cpp: devices that exit early
  Status tend_devices();
  void notice_end(std::size_t device);
  Status start_again(std::size_t device);
  DeviceEnd end_of(std::size_t device);
  [[nodiscard]] bool others_wait();
  [[nodiscard]] double seconds_left() const;
  [[nodiscard]] bool time_is_over() const;
  void print(const std::string& event);
  // demo_changes.cpp: devices of an elastic demo that die, join and leave
  Status change_group();
  Status add_device(std::size_t device);
  void end_device(std::size_t device, int signal);
  bool all_devices_ended();
  void look();  ///< polls every device's status page
  void look_at(std::size_t device);
  void look_at_clock();
  void draw();
  /// True if every device is in one of these states.
  [[nodiscard]] bool all_in(std::initializer_list<std::string_view> states) const;
  Result<Child> start_child(const std::string& name, std::vector<std::string> arguments);
  [[nodiscard]] Summary last_seen(std::size_t device) const;
  void collect(DemoOutcome& outcome) const;

  DemoPlan& plan_;
  const Terminal& terminal_;
  std::ostream& show_;
  const bool redraw_;
  const StopRequest& stop_;
  const RealClock clock_;
  const TimePoint began_;
  std::optional<TimePoint> formed_at_;
  TimePoint next_line_{};
  bool waited_ = false;  // a device was forming at the last draw
  std::optional<ScreenPainter> painter_;
  std::vector<Child> broker_;  // 0 or 1
  std::vector<Child> feeder_;  // 0 or 1
  std::vector<Child> devices_;
  /// State of a device's process.
  struct Life {
    int restarts = 0;
    std::optional<TimePoint> ended_at;  ///< nullopt while it runs
    std::optional<TimePoint> start_at;  ///< time of the next start, if any
    bool intended_end = false;          ///< the demo has killed or stopped it
  };
  std::vector<Life> lives_;  // [device]
  TimePoint last_start_{};   // last start of any device
  std::optional<ElasticScript> script_;
  GroupView view_;
  TimeToAccuracy time_to_accuracy_;  // computed from the curve: a restarted device loses its times
  std::vector<std::deque<std::pair<double, std::uint64_t>>>
      trained_;  // per device: (second, rows), recent seconds
};

}  // namespace rivulet::runtime::cli
