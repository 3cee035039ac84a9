#pragma once
#include <memory>
#include <string>

#include "core/digest.h"
#include "core/result.h"
#include "devices/trainer.h"
#include "runtime/agreed_state.h"

namespace rivulet::runtime {

/// An agreed state on disk, for evaluation by another process: versioned header, model name, counts, clocks,
/// partitions, arrays, XXH3-128 over all of it, and the agreed digest. Written to a temp name and renamed.
/// Errors: io (names the file).
Status write_state_file(const std::string& path, const std::string& model, const AgreedState& state,
                        const Digest& digest);

/// Loads into a state of `layout`. Takes nothing on trust: version, model, counts and checksum are checked
/// before anything is used. Errors: io, bad_record (says what is wrong with which file).
Result<AgreedState> read_state_file(const std::string& path, const std::string& model,
                                    const devices::ModelLayout& layout, devices::Device& device,
                                    Digest& digest);

}  // namespace rivulet::runtime
