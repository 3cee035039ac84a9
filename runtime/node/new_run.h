#pragma once
#include <string>

#include "runtime/config/config.h"
#include "runtime/node/control_topic.h"
#include "runtime/process/log.h"
#include "runtime/process/whole_file.h"
#include "sync/membership/fold.h"

namespace rivulet::runtime {

/// Prepares a device that starts with --new-run, before it joins. Reads from the control topic whether a new
/// run may begin or has begun. If so, moves the checkpoints in `folder` to before-1, before-2, ... in it. A
/// device that is already in the run keeps them and resumes. Errors: invalid_config (the present run has not
/// ended: names its members), unavailable (control topic), io.
Status prepare_new_run(const Config& config, const std::string& folder, Logger& log,
                       const ControlTopic::Pause& pause);

/// The same for a caller that has read the log. If the run resumes, checkpoints of an earlier run are still
/// moved aside, because the group would not accept them. Errors: invalid_config, io.
Status start_over(const sync::membership::Fold& fold, const Config& config, const std::string& folder,
                  Logger& log, const FileOperations& files = system_files());

/// True if a device that has a state of `newest` and sends HELLO with --new-run must begin without it.
bool begins_empty(const sync::membership::Fold& fold, const std::string& device, const Stamp& newest);

/// Moves the checkpoints in `folder` to the first unused before-N. Returns its path; empty if there were
/// none. Durable when it returns. Errors: io.
Result<std::string> keep_aside(const std::string& folder, const FileOperations& files = system_files());

}  // namespace rivulet::runtime
