#pragma once
#include "core/result.h"

namespace rivulet::runtime {

/// What the process reports to its supervisor.
enum class ExitCode : int {
  ok = 0,
  failure = 1,
  usage = 2,
  unavailable = 69,  ///< a dependency (broker, topic, library, port) is not there
  watchdog = 70,     ///< a thread stalled beyond its deadline
  try_again = 75,    ///< a peer was lost; start again
  superseded = 76,   ///< a newer session of this device exists
  configuration = 78,
};

ExitCode exit_code_for(ErrorCode code) noexcept;

}  // namespace rivulet::runtime
