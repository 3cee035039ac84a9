#include "runtime/status/ledger_metrics.h"

#include <array>
#include <limits>
#include <utility>

#include "runtime/process/topic_name.h"

namespace rivulet::runtime {
namespace {

constexpr Duration publish_every = std::chrono::milliseconds(250);

std::string fate_name(std::size_t reason) {
  return "dropped_" + std::string(name_of(static_cast<DropReason>(reason)));
}

}  // namespace

struct LedgerMetrics::Gauges {
  Gauges(MetricsSink& sink, const std::string& topic, const std::string& partition)
      : start(sink.gauge("ledger_offset", {{"topic", topic}, {"partition", partition}, {"at", "start"}})),
        next(sink.gauge("ledger_offset", {{"topic", topic}, {"partition", partition}, {"at", "next"}})),
        trained(rows(sink, topic, partition, "trained")),
        shared(rows(sink, topic, partition, "shared")),
        holes(rows(sink, topic, partition, "hole")) {
    for (std::size_t reason = 0; reason < drop_reasons; ++reason)
      dropped.at(reason) = &rows(sink, topic, partition, fate_name(reason));
    start.set(std::numeric_limits<double>::quiet_NaN());  // until the group has synchronized it
    next.set(std::numeric_limits<double>::quiet_NaN());
  }
  static Gauge& rows(MetricsSink& sink, const std::string& topic, const std::string& partition,
                     const std::string& fate) {
    return sink.gauge("ledger_rows", {{"topic", topic}, {"partition", partition}, {"fate", fate}});
  }
  Gauge& start;
  Gauge& next;
  Gauge& trained;
  Gauge& shared;
  Gauge& holes;
  std::array<Gauge*, drop_reasons> dropped{};
};

LedgerMetrics::LedgerMetrics(MetricsSink& metrics, NodeStatus& status, std::span<const PartitionId> own,
                             const std::vector<std::string>& topics)
    : status_(status) {
  for (const PartitionId& id : own)
    gauges_[id] = std::make_unique<Gauges>(metrics, topic_of(id, topics), std::to_string(id.partition));
}

LedgerMetrics::~LedgerMetrics() = default;

void LedgerMetrics::publish(const AgreedState& state, TimePoint now) {
  if (now < next_) return;
  next_ = now + publish_every;
  NodeStatus::LedgerView books;
  for (auto& [id, gauges] : gauges_) {
    const auto known = state.partitions.find(id);
    if (known == state.partitions.end()) continue;
    const PartitionProgress& progress = known->second;
    books.emplace_back(id, progress);
    books.back().second.runs.clear();
    gauges->start.set(static_cast<double>(progress.start.offset));
    gauges->next.set(static_cast<double>(progress.next.offset));
    gauges->trained.set(static_cast<double>(progress.trained));
    gauges->shared.set(static_cast<double>(progress.shared));
    gauges->holes.set(static_cast<double>(progress.holes));
    for (std::size_t reason = 0; reason < drop_reasons; ++reason)
      gauges->dropped.at(reason)->set(static_cast<double>(progress.dropped.at(reason)));
  }
  status_.set_ledger(std::move(books));
}

}  // namespace rivulet::runtime
