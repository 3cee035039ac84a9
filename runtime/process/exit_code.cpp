#include "runtime/process/exit_code.h"

namespace rivulet::runtime {

ExitCode exit_code_for(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_config: return ExitCode::configuration;
    case ErrorCode::usage: return ExitCode::usage;
    case ErrorCode::unavailable:
    case ErrorCode::source_lost: return ExitCode::unavailable;
    case ErrorCode::peer_lost:
    case ErrorCode::timed_out: return ExitCode::try_again;
    case ErrorCode::superseded: return ExitCode::superseded;
    case ErrorCode::bad_record:
    case ErrorCode::protocol:
    case ErrorCode::diverged:
    case ErrorCode::numeric:
    case ErrorCode::io: return ExitCode::failure;
    case ErrorCode::cancelled: return ExitCode::ok;
  }
  return ExitCode::failure;
}

}  // namespace rivulet::runtime
