#include "runtime/metrics/prometheus_sink.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <exception>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/check.h"
#include "runtime/metrics/process_metrics.h"

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

// At most twelve buckets, for ever: a changed boundary breaks every recorded query.
using Buckets = prometheus::Histogram::BucketBoundaries;
Buckets buckets_of(std::string_view name) {
  if (name == "batch_rows") return {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  if (name == "record_delay_seconds") return {0.01, 0.05, 0.1, 0.25, 0.5, 1, 5, 10, 60, 600, 3600};
  return {0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01,
          0.05,   0.1,    0.5,   1,      10};  // seconds of a step or an exchange
}

const Definition& find(std::string_view name, Kind kind) {
  for (const Definition& d : definitions) {
    if (d.name != name) continue;
    RIVULET_CHECK(d.kind == kind, "this metric is of another kind in core/metrics.def");
    return d;
  }
  check_failed(__FILE__, __LINE__, "name in core/metrics.def", name);
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
struct HistogramHandle final : Histogram {
  explicit HistogramHandle(prometheus::Histogram& h) : to(h) {}
  void observe(double value) noexcept override { to.Observe(value); }
  prometheus::Histogram& to;
};

using LabelMap = std::map<std::string, std::string>;
using Key = std::pair<std::string, LabelMap>;

// With InsertBehavior::Merge the second call returns the family of the first.
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
    return resolve(histograms_, find(name, Kind::histogram), labels,
                   [&](const Definition& d, const LabelMap& map) -> auto& {
                     return family(prometheus::BuildHistogram(), d, registry_).Add(map, buckets_of(d.name));
                   });
  }
  [[nodiscard]] std::string scrape() override;

 private:
  /// The handle of a name and its labels: made once, the same ever after.
  template <class Handle, class Make>
  Handle& resolve(std::map<Key, Handle>& handles, const Definition& definition, Labels labels, Make make) {
    Key key{std::string(definition.name), {}};
    for (const auto& [label, value] : labels) key.second.emplace(label, value);
    const std::lock_guard lock(mutex_);
    if (const auto found = handles.find(key); found != handles.end()) return found->second;
    try {
      return handles.try_emplace(key, make(definition, key.second)).first->second;
    } catch (const std::exception& e) {  // a label name that Prometheus forbids
      check_failed(__FILE__, __LINE__, "labels of a metric", e.what());
    }
  }

  // shared, under mutex_ (the registry has its own as well)
  std::mutex mutex_;
  prometheus::Registry registry_{prometheus::Registry::InsertBehavior::Merge};
  std::map<Key, CounterHandle> counters_;
  std::map<Key, GaugeHandle> gauges_;
  std::map<Key, HistogramHandle> histograms_;
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

std::string Sink::scrape() {
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  for (auto& family : process_families()) families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace

std::unique_ptr<PrometheusSink> make_prometheus_sink() {
  return std::make_unique<Sink>();
}

}  // namespace rivulet::runtime
