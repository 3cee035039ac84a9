#pragma once
#include <functional>
#include <string>
#include <vector>

#include "runtime/node/control_topic.h"
#include "runtime/process/stop.h"

namespace rivulet::runtime::cli {

/// A session that a STOP ends.
struct StoppedDevice {
  std::string id;
  std::string host;
  std::int64_t pid = 0;
  std::int64_t session = -1;
  bool lost = false;  ///< the others had lost it before: it may be dead
};

struct StopReport {
  std::vector<StoppedDevice> ended;
  std::vector<StoppedDevice> silent;  ///< has not reported its end within the time
  /// Everybody has ended who was there as far as the others knew.
  [[nodiscard]] bool complete() const;
};

/// Ends a job: writes STOP into its control topic and waits until everybody it ends has reported it. Devices
/// that the others had lost are waited for 10 s at most. `say` gets the progress, in lines for people. Blocks
/// up to `timeout` and what reading the topic takes. Errors: unavailable (control topic), timed_out (the STOP
/// itself was not written in time), cancelled.
Result<StopReport> stop_job(ControlTopic& topic, Duration timeout, const StopRequest& interrupted,
                            const std::function<void(const std::string&)>& say);

/// Who would be ended by a STOP now, by id: devices that are open and in the last view or ready for the next.
std::vector<StoppedDevice> devices_to_stop(const sync::membership::Fold& fold);

}  // namespace rivulet::runtime::cli
