#include "runtime/status/metrics/build_info.h"

#include <string_view>

#include "rivulet_version.h"
#include "stream/open.h"

namespace rivulet::runtime {
namespace {

#if defined(__x86_64__)
constexpr std::string_view built_for = "x86_64";
#elif defined(__aarch64__)
constexpr std::string_view built_for = "aarch64";
#else
constexpr std::string_view built_for = "other";
#endif

/// Returns the version of `library`. A version begins with a digit; the fact of an absent library is a
/// sentence.
std::string version_of(std::string_view library, std::span<const std::pair<std::string, std::string>> facts) {
  for (const auto& [name, value] : facts)
    if (name == library && !value.empty() && value.front() >= '0' && value.front() <= '9')
      return value.substr(0, value.find_first_of(" ,;("));
  return "none";
}

}  // namespace

BuildInfo build_info(std::span<const std::pair<std::string, std::string>> facts) {
  return {.version = RIVULET_VERSION,
          .revision = RIVULET_REVISION,
          .torch = version_of("LibTorch", facts),
          .librdkafka = stream::kafka_client_version(),
          .cuda = version_of("CUDA", facts),
          .arch = std::string(built_for)};
}

void publish_build_info(MetricsSink& metrics, const BuildInfo& info) {
  metrics
      .gauge("build_info", {{"version", info.version},
                            {"revision", info.revision},
                            {"torch", info.torch},
                            {"librdkafka", info.librdkafka},
                            {"cuda", info.cuda},
                            {"arch", info.arch}})
      .set(1);
}

void publish_device_info(MetricsSink& metrics, const std::string& device, const std::string& model,
                         const std::string& job) {
  metrics.gauge("device_info", {{"device", device}, {"model", model}, {"rivulet_job", job}}).set(1);
}

void publish_group_sizes(MetricsSink& metrics, const GroupSizes& sizes) {
  metrics.gauge("job_devices", {{"size", "min"}}).set(sizes.min);
  metrics.gauge("job_devices", {{"size", "wanted"}}).set(sizes.wanted);
  metrics.gauge("job_devices", {{"size", "max"}}).set(sizes.max);
}

}  // namespace rivulet::runtime
