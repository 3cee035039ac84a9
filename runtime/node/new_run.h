#pragma once
#include <string>

#include "runtime/config/config.h"
#include "runtime/node/control_topic.h"
#include "runtime/process/log.h"
#include "runtime/process/whole_file.h"
#include "sync/membership/fold.h"

namespace rivulet::runtime {

/// Prepares a device that starts with --new-run, before it joins. Reads from the control topic whether a new
/// run may begin or has begun. If so, moves the checkpoints in `folder` to its first unused subfolder
/// before-1, before-2, ... A device that is already in the run keeps them and resumes. Errors: invalid_config
/// (the current run has not ended; names its members), unavailable (control topic), io.
Status prepare_new_run(const Config& config, const std::string& folder, Logger& log,
                       const ControlTopic::Pause& pause);

/// The same for a caller that has already read the log. Also moves checkpoints of an earlier run aside if the
/// current run resumes, because the group would not accept them. Errors: invalid_config, io.
Status start_over(const sync::membership::Fold& fold, const Config& config, const std::string& folder,
                  Logger& log, const FileOperations& files = system_files());

/// True if a device that sends HELLO with --new-run must begin without its newest state, whose stamp is
/// `newest`.
bool begins_empty(const sync::membership::Fold& fold, const std::string& device, const Stamp& newest);

/// Moves the checkpoints in `folder` to the first unused before-N. Returns the path of before-N; empty if
/// there were no checkpoints. The move is durable on return. Errors: io.
Result<std::string> keep_aside(const std::string& folder, const FileOperations& files = system_files());

}  // namespace rivulet::runtime
