#pragma once
#include "core/result.h"

namespace rivulet::runtime {

/// Exit codes for the supervisor.
enum class ExitCode : int {
  ok = 0,
  failure = 1,
  usage = 2,
  unavailable = 69,  ///< missing dependency (broker, topic, library, port)
  watchdog = 70,     ///< a thread exceeded its deadline
  try_again = 75,    ///< a peer was lost; restart
  superseded = 76,   ///< a newer process of this device exists
  configuration = 78,
};

ExitCode exit_code_for(ErrorCode code) noexcept;

}  // namespace rivulet::runtime
