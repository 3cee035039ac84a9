#pragma once
#include <functional>
#include <string>
#include <vector>

#include "runtime/node/control_topic.h"
#include "runtime/process/stop.h"

namespace rivulet::runtime::cli {

/// A device session that a STOP addresses.
struct StoppedDevice {
  std::string id;
  std::string host;
  std::int64_t pid = 0;
  std::int64_t session = -1;
  bool lost = false;  ///< already lost by its peers; may be dead
};

struct StopReport {
  std::vector<StoppedDevice> ended;
  std::vector<StoppedDevice> silent;  ///< has not reported in time that it stopped
  /// True if all devices that were not lost have stopped.
  [[nodiscard]] bool complete() const;
};

/// Stops a job: writes STOP into its control topic and waits until all affected devices report that they
/// stopped. Waits 10 s at most for lost devices. `say` receives progress lines for the user. Blocks for up to
/// `timeout` plus the time to read the topic. Errors: unavailable (control topic), timed_out (STOP not
/// written in time), cancelled.
Result<StopReport> stop_job(ControlTopic& topic, Duration timeout, const StopRequest& interrupted,
                            const std::function<void(const std::string&)>& say);

/// Devices that a STOP would stop now, by id: open, and starting, in the last view or ready for the next.
std::vector<StoppedDevice> devices_to_stop(const sync::membership::Fold& fold);

}  // namespace rivulet::runtime::cli
