#pragma once
#include <string>
#include <utility>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/node/catalog.h"
#include "runtime/node/run.h"

namespace rivulet::runtime {

/// Like run_device(), but with a given catalog, so that tests can add parts without changing any agent.
RunResult run_device_with(const LoadedConfig& loaded, const RunOptions& options, const Catalog& catalog,
                          StopRequest& stop);

/// Returns role and type of every object that this wiring builds for a configuration.
std::vector<std::pair<std::string, std::string>> production_object_types(const LoadedConfig& loaded);

}  // namespace rivulet::runtime
