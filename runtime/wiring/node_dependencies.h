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

/// What a real device opens to the outside: its stream, the control log, the transport to its peers.
namespace rivulet::runtime {

Result<std::unique_ptr<stream::RecordSource>> open_source(const Config& config, bool dry_run,
                                                          const MemoryPlan& memory, const Clock& clock,
                                                          MetricsSink& metrics);

/// A dry run joins nothing, and one device whose rows come from no broker has nobody to meet: their log is
/// their own. One device on Kafka writes HELLO there, so that a second one with its id or its partition is
/// found out.
bool log_is_own(const Config& config, bool dry_run);

Result<std::unique_ptr<OrderedLog>> open_log(const Config& config, const MemoryPlan& plan, bool dry_run,
                                             sync::membership::MemoryLog& memory);

/// `alone` is what a group of one talks through. The thread of the transport beats in `comm_beat_ns`.
Result<sync::Connect> open_wires(const Config& config, sync::MemoryNetwork& alone, const Clock& clock,
                                 std::atomic<std::int64_t>& comm_beat_ns);

/// As log.decisions asks for; a dry run decides nothing. Errors: io.
Result<std::unique_ptr<DecisionLog>> open_decisions(const Config& config, bool dry_run);

/// Of a source that reads topics, and of the control topic if it is the group's; null: there are none.
std::unique_ptr<TopicWatch> make_topic_watch(const Config& config, bool dry_run, const Clock& clock,
                                             NodeStatus& status);

}  // namespace rivulet::runtime
