#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "core/clock.h"
#include "core/log.h"
#include "core/metrics.h"
#include "core/result.h"
#include "runtime/config/config.h"
#include "runtime/decisions/decision_log.h"
#include "runtime/node/memory_plan.h"
#include "runtime/status/health/topic_watch.h"
#include "stream/source.h"
#include "sync/membership/membership.h"
#include "sync/transport/memory_transport.h"
#include "sync/transport/transport.h"

/// External dependencies of a real device: its stream, the control log, the transport to its peers.
namespace rivulet::runtime {

Result<std::unique_ptr<stream::RecordSource>> open_source(const Config& config, bool dry_run,
                                                          const MemoryPlan& memory, const Clock& clock,
                                                          MetricsSink& metrics);

/// Whether the control log is private to this process. It is in a dry run, and for a single device without a
/// broker. A single device on Kafka writes its HELLO to the control topic, so that a second one with the same
/// id or partition is detected.
bool log_is_own(const Config& config, bool dry_run);

Result<std::unique_ptr<OrderedLog>> open_log(const Config& config, const MemoryPlan& plan, bool dry_run,
                                             sync::membership::MemoryLog& memory);

/// Connects devices: those of a view, and the two of a copy of the state, on the next port.
struct Wires {
  sync::Connect mesh;
  sync::Connect copies;
};
/// `alone`: the in-memory network for a group of one. The transport's thread updates the mesh's heartbeat
/// `comm_beat_ns`.
Result<Wires> open_wires(const Config& config, sync::MemoryNetwork& alone, const Clock& clock,
                         std::atomic<std::int64_t>& comm_beat_ns);

/// Opens the decision log set by log.decisions; a dry run has none. Errors: io.
Result<std::unique_ptr<DecisionLog>> open_decisions(const Config& config, bool dry_run);

/// Makes a watch of the source's topics, and of the control topic if the group uses it; null if there are no
/// topics.
std::unique_ptr<TopicWatch> make_topic_watch(const Config& config, bool dry_run, const Clock& clock,
                                             NodeStatus& status);

}  // namespace rivulet::runtime
