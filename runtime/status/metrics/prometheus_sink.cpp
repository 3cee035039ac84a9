#include "runtime/status/metrics/prometheus_sink.h"

#include <prometheus/check_names.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/check.h"
#include "runtime/status/metrics/process_metrics.h"

namespace rivulet::runtime {
namespace {

enum class Kind : std::uint8_t { counter, gauge, histogram };

struct Definition {
  Kind kind;
  std::string_view name;
  std::string_view help;
};

constexpr Definition definitions[] = {
#define RIVULET_METRIC(kind, name, help) {Kind::kind, #name, help},
#include "core/metrics.def"
#undef RIVULET_METRIC
};

// At most twelve buckets, +Inf included. Boundaries are permanent: a changed one breaks every recorded query.
using Buckets = std::vector<double>;
Buckets buckets_of(std::string_view name) {
  if (name == "batch_rows") return {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  if (name == "record_delay_seconds") return {0.01, 0.05, 0.1, 0.25, 0.5, 1, 5, 10, 60, 600, 3600};
  if (name == "decode_duration_seconds")
    return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.25, 1};
  // Steps and exchanges. Rounds with local steps or slow streams take seconds: from 100 ms to 15 s,
  // neighbouring bounds differ by at most a factor of 2.5, which bounds the error of percentiles.
  return {0.001, 0.005, 0.02, 0.1, 0.25, 0.5, 1, 2.5, 6, 15, 60};
}

const Definition& find(std::string_view name) {
  for (const Definition& d : definitions)
    if (d.name == name) return d;
  check_failed(__FILE__, __LINE__, "name in core/metrics.def", name);
}

const Definition& find(std::string_view name, Kind kind) {
  const Definition& d = find(name);
  RIVULET_CHECK(d.kind == kind, "this metric has a different kind in core/metrics.def");
  return d;
}

struct CounterHandle final : Counter {
  explicit CounterHandle(prometheus::Counter& c) : to(c) {}
  void add(double amount) noexcept override { to.Increment(amount); }
  prometheus::Counter& to;
};
struct GaugeHandle final : Gauge {
  explicit GaugeHandle(prometheus::Gauge& g) : to(g) {}
  void set(double value) noexcept override { to.Set(value); }
  prometheus::Gauge& to;
};
using LabelMap = std::map<std::string, std::string>;

/// prometheus-cpp's histogram takes a mutex for every value, which a scraping thread may hold. Here,
/// observing never waits. A scrape may count a value that the sum does not include yet.
class AtomicHistogram final : public Histogram {
 public:
  AtomicHistogram(const Definition& of, LabelMap labels)
      : definition(of),
        labels_(std::move(labels)),
        bounds_(buckets_of(of.name)),
        counts_(bounds_.size() + 1) {}
  void observe(double value) noexcept override {
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    counts_[static_cast<std::size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }
  [[nodiscard]] prometheus::ClientMetric read() const {
    prometheus::ClientMetric metric;
    for (const auto& [name, value] : labels_) metric.label.push_back({name, value});
    std::uint64_t so_far = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      so_far += counts_[i].load(std::memory_order_relaxed);
      const bool last = i == bounds_.size();
      metric.histogram.bucket.push_back(
          {so_far, last ? std::numeric_limits<double>::infinity() : bounds_[i]});
    }
    metric.histogram.sample_count = so_far;
    metric.histogram.sample_sum = sum_.load(std::memory_order_relaxed);
    return metric;
  }

  const Definition& definition;

 private:
  const LabelMap labels_;
  const Buckets bounds_;
  std::vector<std::atomic<std::uint64_t>> counts_;
  std::atomic<double> sum_{0};
};

using Key = std::pair<std::string, LabelMap>;

// With InsertBehavior::Merge, a second registration returns the existing family.
template <class Builder>
auto& family(Builder builder, const Definition& d, prometheus::Registry& registry) {
  return builder.Name("rivulet_" + std::string(d.name)).Help(std::string(d.help)).Register(registry);
}

class Sink final : public PrometheusSink {
 public:
  Counter& counter(std::string_view name, Labels labels) override {
    return resolve(counters_, find(name, Kind::counter), labels,
                   [&](const Definition& d, const LabelMap& map) -> auto& {
                     return family(prometheus::BuildCounter(), d, registry_).Add(map);
                   });
  }
  Gauge& gauge(std::string_view name, Labels labels) override {
    return resolve(gauges_, find(name, Kind::gauge), labels,
                   [&](const Definition& d, const LabelMap& map) -> auto& {
                     return family(prometheus::BuildGauge(), d, registry_).Add(map);
                   });
  }
  Histogram& histogram(std::string_view name, Labels labels) override {
    const Definition& d = find(name, Kind::histogram);
    LabelMap map;
    for (const auto& [label, value] : labels) {
      RIVULET_CHECK(prometheus::CheckLabelName(std::string(label)) && label != "le",
                    "Prometheus does not allow this label name");
      map.emplace(label, value);
    }
    const std::lock_guard lock(mutex_);
    return histograms_.try_emplace({std::string(name), map}, d, map).first->second;
  }
  void remove(std::string_view name, Labels labels) override {
    const Definition& d = find(name);
    RIVULET_CHECK(d.kind != Kind::histogram, "histograms cannot be removed");
    Key key{std::string(name), {}};
    for (const auto& [label, value] : labels) key.second.emplace(label, value);
    const std::lock_guard lock(mutex_);
    if (d.kind == Kind::gauge)
      end_series(gauges_, key, family(prometheus::BuildGauge(), d, registry_));
    else
      end_series(counters_, key, family(prometheus::BuildCounter(), d, registry_));
  }
  [[nodiscard]] std::string scrape() override;

 private:
  std::vector<prometheus::MetricFamily> histogram_families();
  template <class Handle, class Family>
  static void end_series(std::map<Key, Handle>& handles, const Key& key, Family& family) {
    const auto found = handles.find(key);
    if (found == handles.end()) return;
    family.Remove(&found->second.to);
    handles.erase(found);
  }
  /// Returns the handle of a name and its labels. Created once, then stable.
  template <class Handle, class Make>
  Handle& resolve(std::map<Key, Handle>& handles, const Definition& definition, Labels labels, Make make) {
    Key key{std::string(definition.name), {}};
    for (const auto& [label, value] : labels) key.second.emplace(label, value);
    const std::lock_guard lock(mutex_);
    if (const auto found = handles.find(key); found != handles.end()) return found->second;
    try {
      return handles.try_emplace(key, make(definition, key.second)).first->second;
    } catch (const std::exception& e) {  // invalid label name
      check_failed(__FILE__, __LINE__, "labels of a metric", e.what());
    }
  }

  // shared, under mutex_ (the registry also has its own)
  std::mutex mutex_;
  prometheus::Registry registry_{prometheus::Registry::InsertBehavior::Merge};
  std::map<Key, CounterHandle> counters_;
  std::map<Key, GaugeHandle> gauges_;
  std::map<Key, AtomicHistogram> histograms_;  ///< histograms by name, then labels
};

std::vector<prometheus::MetricFamily> process_families() {
  std::vector<prometheus::MetricFamily> families;
  for (const ProcessMetric& m : read_process_metrics()) {
    prometheus::ClientMetric value;
    value.counter.value = m.value;
    value.gauge.value = m.value;
    const auto type = m.counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
    families.push_back({m.name, m.help, type, {value}});
  }
  return families;
}

std::vector<prometheus::MetricFamily> Sink::histogram_families() {
  std::vector<prometheus::MetricFamily> families;
  const std::lock_guard lock(mutex_);  // held only to create a series, never to observe
  for (const auto& [key, histogram] : histograms_) {
    const std::string name = "rivulet_" + key.first;
    if (families.empty() || families.back().name != name)
      families.push_back(
          {name, std::string(histogram.definition.help), prometheus::MetricType::Histogram, {}});
    families.back().metric.push_back(histogram.read());
  }
  return families;
}

std::string Sink::scrape() {
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  for (auto& family : histogram_families()) families.push_back(std::move(family));
  for (auto& family : process_families()) families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace

std::unique_ptr<PrometheusSink> make_prometheus_sink() {
  return std::make_unique<Sink>();
}

}  // namespace rivulet::runtime
