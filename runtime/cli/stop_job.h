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
  bool lost = false;  ///< lost to its peers; the process may have died
};

struct StopReport {
  std::vector<StoppedDevice> ended;
  std::vector<StoppedDevice> silent;  ///< devices that did not report in time that they stopped
  /// True if all devices that were not lost have stopped.
  [[nodiscard]] bool complete() const;
};

/// Stops a job: writes STOP into its control topic and waits until all affected devices report that they
/// stopped. Waits up to 10 s for lost devices. `say` receives progress lines for the user. Blocks for up to
/// `timeout` plus the time to read the topic. Errors: unavailable (control topic), timed_out (STOP not
/// written in time), cancelled.
Result<StopReport> stop_job(ControlTopic& topic, Duration timeout, const StopRequest& interrupted,
                            const std::function<void(const std::string&)>& say);

/// Returns the devices that a STOP would stop now, by id: those with an open session that are starting, in
/// the last view, or ready for the next.
std::vector<StoppedDevice> devices_to_stop(const sync::membership::Fold& fold);

}  // namespace rivulet::runtime::cli
