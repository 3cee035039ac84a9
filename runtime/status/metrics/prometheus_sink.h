#pragma once
#include <memory>
#include <string>

#include "core/metrics.h"

namespace rivulet::runtime {

/// MetricsSink over a prometheus-cpp registry, with the process_* set read from /proc at each scrape.
class PrometheusSink : public MetricsSink {
 public:
  /// The text exposition of everything. Thread-safe.
  [[nodiscard]] virtual std::string scrape() = 0;
};
/// Job and device are labels of one info metric alone, not of every series.
std::unique_ptr<PrometheusSink> make_prometheus_sink();

}  // namespace rivulet::runtime
