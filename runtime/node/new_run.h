#pragma once
#include <string>

#include "runtime/config/config.h"
#include "runtime/node/control_topic.h"
#include "runtime/process/log.h"
#include "runtime/process/whole_file.h"
#include "sync/membership/fold.h"

namespace rivulet::runtime {

/// What must be done before a device that was asked to start over (--new-run) joins: looks into the control
/// topic whether a new run may begin or has begun, and if so keeps the checkpoints in `folder` aside, in
/// before-1, before-2, ... under it. A device that is in the run already keeps them and resumes.
/// Errors: invalid_config (the present run has not ended: who is in it), unavailable (control topic), io.
Status prepare_new_run(const Config& config, const std::string& folder, Logger& log,
                       const ControlTopic::Pause& pause);

/// The same for a caller that has read the log. Where the run resumes, checkpoints of an earlier one are kept
/// aside all the same: nobody would believe them. Errors: invalid_config, io.
Status start_over(const sync::membership::Fold& fold, const Config& config, const std::string& folder,
                  Logger& log, const FileOperations& files = system_files());

/// True when a device that holds a state of `newest` and says HELLO with --new-run must begin without it.
bool begins_empty(const sync::membership::Fold& fold, const std::string& device, const Stamp& newest);

/// Moves the checkpoints in `folder` to the first before-N that does not exist yet; its path, or nothing if
/// there were none. Safe from a loss of power when it returns. Errors: io.
Result<std::string> keep_aside(const std::string& folder, const FileOperations& files = system_files());

}  // namespace rivulet::runtime
