#pragma once
#include <string>

#include "core/result.h"
#include "runtime/state/state_image.h"

namespace rivulet::runtime {

/// Writes an agreed state to a file, atomically. Errors: io (names the file).
Status write_state_file(const std::string& path, const StateOwner& owner, const AgreedState& state,
                        const Digest& digest);

/// Reads a state file. Errors: io, bad_record (names the file and the defect).
Result<DecodedState> read_state_file(const std::string& path, const Expected& expected);

}  // namespace rivulet::runtime
