#pragma once
#include <memory>
#include <string>

#include "core/metrics.h"

namespace rivulet::runtime {

/// MetricsSink over a prometheus-cpp registry. Adds the process_* set from /proc at each scrape.
class PrometheusSink : public MetricsSink {
 public:
  /// Returns all metrics in text exposition format. Thread-safe.
  [[nodiscard]] virtual std::string scrape() = 0;
};
/// Creates an empty sink. Job and device are labels of one info metric only, not of every series.
std::unique_ptr<PrometheusSink> make_prometheus_sink();

}  // namespace rivulet::runtime
