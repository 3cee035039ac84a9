#pragma once
#include <string>
#include <utility>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/node/catalog.h"
#include "runtime/node/run.h"

namespace rivulet::runtime {

/// run_device() with another catalog, so that tests add parts without touching any agent.
RunResult run_device_with(const LoadedConfig& loaded, const RunOptions& options, const Catalog& catalog,
                          StopRequest& stop);

/// Returns role and type of every object that this wiring builds for a configuration.
std::vector<std::pair<std::string, std::string>> production_object_types(const LoadedConfig& loaded);

}  // namespace rivulet::runtime
