#pragma once
#include <span>
#include <string>
#include <utility>

#include "core/group_sizes.h"
#include "core/metrics.h"

namespace rivulet::runtime {

/// Versions of the program and its libraries, used as labels of build_info. "none" stands for an absent
/// library.
struct BuildInfo {
  std::string version;
  std::string revision;
  std::string torch;
  std::string librdkafka;
  std::string cuda;
  std::string arch;  ///< CPU architecture: "x86_64", "aarch64"
};
/// `facts`: from devices::numeric_library_facts().
BuildInfo build_info(std::span<const std::pair<std::string, std::string>> facts);
void publish_build_info(MetricsSink& metrics, const BuildInfo& info);
void publish_device_info(MetricsSink& metrics, const std::string& device, const std::string& model,
                         const std::string& job);
void publish_group_sizes(MetricsSink& metrics, const GroupSizes& sizes);

}  // namespace rivulet::runtime
