#pragma once
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace rivulet {

/// Label name and value pairs. Resolved once at start, never on the hot path.
using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

class Counter {
 public:
  virtual ~Counter() = default;
  virtual void add(double amount) noexcept = 0;  ///< amount >= 0
};
class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void set(double value) noexcept = 0;
};
class Histogram {
 public:
  virtual ~Histogram() = default;
  virtual void observe(double value) noexcept = 0;
};

/// Destination of measurements. Names omit the prefix `rivulet_`; core/metrics.def lists them with type, unit
/// and help. An unknown name is a bug. Handles live as long as the sink; updating them is thread-safe.
class MetricsSink {
 public:
  virtual ~MetricsSink() = default;
  virtual Counter& counter(std::string_view name, Labels labels = {}) = 0;
  virtual Gauge& gauge(std::string_view name, Labels labels = {}) = 0;
  virtual Histogram& histogram(std::string_view name, Labels labels = {}) = 0;
  /// Removes the series of a counter or gauge; its handle must not be used afterwards. No effect if the
  /// series does not exist.
  virtual void remove(std::string_view name, Labels labels = {}) = 0;
};

/// Discards everything: for tests and for commands without metrics.
class NullMetrics final : public MetricsSink {
 public:
  Counter& counter(std::string_view, Labels) override { return counter_; }
  Gauge& gauge(std::string_view, Labels) override { return gauge_; }
  Histogram& histogram(std::string_view, Labels) override { return histogram_; }
  void remove(std::string_view, Labels) override {}

 private:
  struct NullCounter final : Counter {
    void add(double) noexcept override {}
  } counter_;
  struct NullGauge final : Gauge {
    void set(double) noexcept override {}
  } gauge_;
  struct NullHistogram final : Histogram {
    void observe(double) noexcept override {}
  } histogram_;
};

}  // namespace rivulet
