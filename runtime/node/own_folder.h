#pragma once
#include "core/result.h"
#include "runtime/config/config.h"
#include "runtime/process/data_dir.h"

namespace rivulet::runtime {

/// Before a device reads or writes anything in device.data_dir: the folder is its own, or becomes it where
/// `claims`. Checkpoints that somebody copied there must be of its job. Errors: those of DataDir,
/// invalid_config (names a checkpoint of another job).
Status take_own_folder(DataDir& held, const Config& config, bool claims);

}  // namespace rivulet::runtime
