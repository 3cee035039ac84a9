#include "core/result.h"

namespace rivulet {

std::string_view name_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_config: return "invalid_config";
    case ErrorCode::usage: return "usage";
    case ErrorCode::bad_record: return "bad_record";
    case ErrorCode::unavailable: return "unavailable";
    case ErrorCode::source_lost: return "source_lost";
    case ErrorCode::peer_lost: return "peer_lost";
    case ErrorCode::timed_out: return "timed_out";
    case ErrorCode::protocol: return "protocol";
    case ErrorCode::diverged: return "diverged";
    case ErrorCode::superseded: return "superseded";
    case ErrorCode::numeric: return "numeric";
    case ErrorCode::io: return "io";
    case ErrorCode::cancelled: return "cancelled";
  }
  return "unknown";
}

}  // namespace rivulet
