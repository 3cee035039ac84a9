#pragma once
#include <span>
#include <string>
#include <utility>

#include "core/metrics.h"

namespace rivulet::runtime {

/// What this program is made of, as labels of build_info. A library that the build has not is "none".
struct BuildInfo {
  std::string version;
  std::string revision;
  std::string torch;
  std::string librdkafka;
  std::string cuda;
  std::string arch;  ///< of the processors that it runs on: "x86_64", "aarch64"
};
/// `facts`: of devices::numeric_library_facts().
BuildInfo build_info(std::span<const std::pair<std::string, std::string>> facts);
void publish_build_info(MetricsSink& metrics, const BuildInfo& info);
void publish_device_info(MetricsSink& metrics, const std::string& device, const std::string& model,
                         const std::string& job);

}  // namespace rivulet::runtime
