#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/metrics.h"

namespace rivulet::runtime {

/// Value of a Latest<double> that has not been measured; null in JSON.
inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

// The kinds of values in NodeStatus. One call updates a value: /api/v1/status, page and summary read it here,
// and its Prometheus series, if any, follows. Any thread reads; no call waits. Values are independent, so
// their atomics impose no memory order.

/// A monotonic counter. Any thread adds.
class Count {
 public:
  using Plain = std::uint64_t;  ///< the reader's type
  void operator+=(Plain amount) noexcept {
    value_.fetch_add(amount, std::memory_order_relaxed);
    if (series_ != nullptr) series_->add(static_cast<double>(amount));
  }
  void operator++() noexcept { *this += 1; }
  [[nodiscard]] Plain load() const noexcept { return value_.load(); }
  operator Plain() const noexcept { return load(); }

  /// Binds the Prometheus series before other threads use the value. Without a metric name, there is no
  /// series.
  void bind(MetricsSink& /*sink*/) noexcept {}
  void bind(MetricsSink& sink, std::string_view metric, Labels labels = {}) {
    series_ = &sink.counter(metric, labels);
  }

 private:
  std::atomic<Plain> value_{0};
  Counter* series_ = nullptr;
};

/// A gauge: the last value. Any thread sets it.
template <class T>
class Latest {
 public:
  using Plain = T;
  explicit Latest(T first = {}) : value_(first) {}
  Latest& operator=(T value) noexcept {
    value_.store(value, std::memory_order_relaxed);
    if (series_ != nullptr) series_->set(static_cast<double>(value));
    return *this;
  }
  [[nodiscard]] T load() const noexcept { return value_.load(); }
  operator T() const noexcept { return load(); }

  void bind(MetricsSink& /*sink*/) noexcept {}
  void bind(MetricsSink& sink, std::string_view metric, Labels labels = {}) {
    series_ = &sink.gauge(metric, labels);
    series_->set(static_cast<double>(load()));
  }

 private:
  std::atomic<T> value_;
  Gauge* series_ = nullptr;
};

/// Durations: a sum in this object, a histogram in Prometheus. Only one thread adds.
class Seconds {
 public:
  using Plain = double;
  void operator+=(double seconds) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + seconds, std::memory_order_relaxed);
    if (series_ != nullptr) series_->observe(seconds);
  }
  [[nodiscard]] Plain load() const noexcept { return value_.load(); }
  operator Plain() const noexcept { return load(); }

  void bind(MetricsSink& sink, std::string_view metric, Labels labels) {
    series_ = &sink.histogram(metric, labels);
  }

 private:
  std::atomic<double> value_{0};
  Histogram* series_ = nullptr;
};

/// A Count for each of an enum's first `n` values, named by name_of(): an object in JSON, a label in
/// Prometheus.
template <class E, std::size_t n>
class CountBy {
 public:
  using Plain = std::map<std::string, std::uint64_t>;  ///< zeros omitted
  [[nodiscard]] Count& operator[](E which) noexcept { return counts_.at(static_cast<std::size_t>(which)); }
  [[nodiscard]] const Count& operator[](E which) const noexcept {
    return counts_.at(static_cast<std::size_t>(which));
  }
  void each(auto&& visit) const {
    for (std::size_t i = 0; i < n; ++i) visit(name_of(static_cast<E>(i)), counts_[i].load());
  }
  [[nodiscard]] Plain load() const {
    Plain out;
    each([&](std::string_view name, std::uint64_t count) {
      if (count > 0) out.emplace(name, count);
    });
    return out;
  }

  void bind(MetricsSink& sink, std::string_view metric, std::string_view label) {
    for (std::size_t i = 0; i < n; ++i) counts_[i].bind(sink, metric, {{label, name_of(static_cast<E>(i))}});
  }
  using Label = std::pair<std::string_view, std::string_view>;
  void bind(MetricsSink& sink, std::string_view metric, const Label& fixed, std::string_view label) {
    for (std::size_t i = 0; i < n; ++i)
      counts_[i].bind(sink, metric, {fixed, {label, name_of(static_cast<E>(i))}});
  }

 private:
  std::array<Count, n> counts_;
};

}  // namespace rivulet::runtime
