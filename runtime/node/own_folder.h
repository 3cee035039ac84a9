#pragma once
#include "core/result.h"
#include "runtime/config/config.h"
#include "runtime/process/data_dir.h"

namespace rivulet::runtime {

/// Checks that device.data_dir belongs to this device, or claims it if `claims` is set, before anything in it
/// is read or written. Checkpoints copied into it must belong to the same job. Errors: those of DataDir,
/// invalid_config (names a checkpoint of another job).
Status take_own_folder(DataDir& held, const Config& config, bool claims);

}  // namespace rivulet::runtime
