#pragma once
#include <string>

#include "core/result.h"
#include "runtime/state/state_image.h"

namespace rivulet::runtime {

/// An agreed state as a file of its own. Replaced as a whole or not at all. Errors: io (names the file).
Status write_state_file(const std::string& path, const StateOwner& owner, const AgreedState& state,
                        const Digest& digest);

/// Errors: io, bad_record (names the file and what is wrong with it).
Result<DecodedState> read_state_file(const std::string& path, const Expected& expected);

}  // namespace rivulet::runtime
