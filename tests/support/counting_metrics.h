#pragma once
#include <map>
#include <string>
#include <string_view>

#include "core/metrics.h"

namespace rivulet::testing {

/// Sums counters and keeps the last value of gauges, by name and label values.
class CountingMetrics final : public MetricsSink {
 public:
  Counter& counter(std::string_view name, Labels labels) override { return cell(name, labels); }
  Gauge& gauge(std::string_view name, Labels labels) override { return cell(name, labels); }
  Histogram& histogram(std::string_view name, Labels labels) override { return cell(name, labels); }
  void remove(std::string_view name, Labels labels) override { cells_.erase(key(name, labels)); }
  double operator[](const std::string& name) { return cells_[name].value; }
  /// True if the series was requested and has not ended.
  [[nodiscard]] bool has(const std::string& name) const { return cells_.contains(name); }
  /// Number of requests for a series. Each may block until a scrape ends.
  [[nodiscard]] int asked() const { return asked_; }

 private:
  struct Cell final : Counter, Gauge, Histogram {
    void add(double amount) noexcept override { value += amount; }
    void set(double to) noexcept override { value = to; }
    void observe(double) noexcept override { value += 1; }
    double value = 0;
  };
  static std::string key(std::string_view name, Labels labels) {
    std::string text(name);
    for (const auto& [label, value] : labels) text += "/" + std::string(value);
    return text;
  }
  Cell& cell(std::string_view name, Labels labels) {
    ++asked_;
    return cells_[key(name, labels)];
  }
  std::map<std::string, Cell> cells_;
  int asked_ = 0;
};

}  // namespace rivulet::testing
