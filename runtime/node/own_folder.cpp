#include "runtime/node/own_folder.h"

#include <fmt/format.h>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/node/node_config.h"

namespace rivulet::runtime {

Status take_own_folder(DataDir& held, const Config& config, bool claims) {
  const std::string& path = config.device.data_dir;
  if (auto taken = held.take(path, data_owner_of(config)); !taken) return taken;
  if (const auto foreign = CheckpointFolder(checkpoints_in(path)).foreign(config.job.name))
    return Error{ErrorCode::invalid_config,
                 fmt::format("device.data_dir {} contains a checkpoint of job {}, but this is job {}: {}",
                             path, foreign->job, config.job.name, foreign->path)};
  return claims ? held.claim() : ok();
}

}  // namespace rivulet::runtime
