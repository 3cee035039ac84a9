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
#include "runtime/cli/live_view.h"
#include "runtime/node/run.h"
#include "runtime/status/summary.h"
#include "runtime/train/progress.h"
#include "stream/open.h"

namespace rivulet::runtime::cli {

/// What the demo's processes left behind.
struct DemoOutcome {
  Status played = ok();            ///< cancelled: a signal ended it
  std::vector<Summary> summaries;  ///< of the devices that were started
  /// How far the log of each partition reaches, asked when all devices had ended.
  Result<std::vector<stream::LogEnds>> log_ends{std::vector<stream::LogEnds>{}};
  bool complete = true;  ///< all of them printed theirs; else some are as last seen
  double seconds = 0;    ///< from the first process to the end of the last
};

/// Starts a broker, the devices and a feeder as processes of their own, shows them, and ends them all,
/// whatever happens. A device whose plug is pulled is started again. Owner: the main thread (the children's
/// lives hang on it).
class Demo {
 public:
  /// `plan.brokers` is filled in when the embedded broker is up. `show` is where the live view goes.
  Demo(DemoPlan& plan, const Terminal& terminal, std::ostream& show, bool redraw, const StopRequest& stop);
  DemoOutcome play();

 private:
  Status play_to_the_end();
  [[nodiscard]] Result<std::vector<stream::LogEnds>> ends_of_logs() const;
  Status start_broker();
  Status start_devices();
  Status start_feeder_when_ready();
  Status watch();
  Status check_children();
  Error death_of(Child& child) const;
  // demo_restarts.cpp: devices that end before the time
  Status tend_devices();
  void notice_end(std::size_t device);
  Status start_again(std::size_t device);
  DeviceEnd end_of(std::size_t device);
  [[nodiscard]] bool others_wait();
  [[nodiscard]] double seconds_left() const;
  [[nodiscard]] bool time_is_over() const;
  void say(const std::string& event);
  bool all_devices_ended();
  void look();  ///< asks every device's status page
  void look_at(std::size_t device);
  void look_at_clock();
  void draw();
  /// Every device is in one of these states.
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
  bool waited_ = false;  // for somebody, when last looked
  std::optional<ScreenPainter> painter_;
  std::vector<Child> broker_;  // 0 or 1
  std::vector<Child> feeder_;  // 0 or 1
  std::vector<Child> devices_;
  /// What became of a device's process.
  struct Life {
    int restarts = 0;
    std::optional<TimePoint> ended_at;  ///< none while it runs
    std::optional<TimePoint> start_at;  ///< when it comes back, if it does
  };
  std::vector<Life> lives_;  // [device]
  TimePoint last_start_{};   // of any device
  GroupView view_;
  TimeToAccuracy time_to_accuracy_;  // as the curve shows it: a device started again does not remember
  std::vector<std::deque<std::pair<double, std::uint64_t>>>
      trained_;  // per device: (second, rows), the last few seconds
};

}  // namespace rivulet::runtime::cli
