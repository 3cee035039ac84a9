#include "runtime/wiring/node_dependencies.h"

#include <algorithm>
#include <string>

#include "runtime/node/control_topic.h"
#include "runtime/node/node_config.h"
#include "runtime/node/peer_address.h"
#include "stream/open.h"
#include "sync/transport/gloo_transport.h"

namespace rivulet::runtime {
namespace {

constexpr Duration open_deadline = std::chrono::seconds(10);
constexpr double synthetic_rate = 1000;  // rows/s unless source.rate is set

/// The client takes the last value of a duplicate property, so the user's come last.
stream::Properties before_the_users(stream::Properties ours, const Config& config) {
  ours.insert(ours.end(), config.source.kafka_properties.begin(), config.source.kafka_properties.end());
  return ours;
}

}  // namespace

Result<std::unique_ptr<stream::RecordSource>> open_source(const Config& config, bool dry_run,
                                                          const MemoryPlan& memory, const Clock& clock,
                                                          MetricsSink& metrics) {
  auto start = start_offset(config);
  if (!start) return start.error();
  if (config.source.type == "kafka") {
    stream::KafkaSourceConfig kafka;
    kafka.properties = before_the_users(memory.client_properties(), config);
    kafka.group_id = "rivulet." + config.job.name;
    kafka.client_id = "rivulet-" + config.device.id;
    kafka.topics = config.source.topics;
    std::sort(kafka.topics.begin(), kafka.topics.end());  // the order of PartitionId::topic
    kafka.start = start.value();
    kafka.open_deadline = open_deadline;
    kafka.count_gaps = config.source.on_gap == "count";
    if (!dry_run) kafka.anchor_file = config.device.data_dir + "/anchors";
    return stream::open_kafka_source(kafka, clock, metrics);
  }
  if (config.source.type == "file") {
    return stream::open_file_source({.path = config.source.path,
                                     .format = config.decode.format,
                                     .rows_per_second = config.source.rate,
                                     .repeat = config.source.repeat,
                                     .seed = config.job.seed},
                                    clock);
  }
  const double rate = config.source.rate;
  auto synthetic = synthetic_config(config);
  synthetic.rows_per_second = [rate](TimePoint) { return rate > 0 ? rate : synthetic_rate; };
  return stream::open_synthetic_source(synthetic, clock);
}

bool log_is_own(const Config& config, bool dry_run) {
  return dry_run || (config.job.devices == 1 && config.source.type != "kafka");
}

Result<std::unique_ptr<OrderedLog>> open_log(const Config& config, const MemoryPlan& plan, bool dry_run,
                                             sync::membership::MemoryLog& memory) {
  if (log_is_own(config, dry_run)) return memory.open();
  if (!has_brokers(config))
    return Error{
        ErrorCode::invalid_config,
        "job.devices = " + text_of(config.job.devices) +
            " needs source.kafka.properties.bootstrap.servers: the group forms through the topic rivulet." +
            config.job.name + ".control"};
  return stream::open_kafka_log({.properties = before_the_users(plan.log_properties(), config),
                                 .topic = ControlTopic::name_of(config.job.name),
                                 .client_id = "rivulet-" + config.device.id + "-control",
                                 .create = true,
                                 .open_deadline = open_deadline});
}

Result<Wires> open_wires(const Config& config, sync::MemoryNetwork& alone, const Clock& clock,
                         std::atomic<std::int64_t>& comm_beat_ns) {
  if (config.job.devices == 1) return Wires{alone.connect_for(clock), alone.connect_for(clock)};
  sync::GlooConfig of_mesh = gloo_config(config);
  sync::GlooConfig of_copies = of_mesh;
  of_mesh.comm_beat_ns = &comm_beat_ns;
  if (of_copies.port != 0) ++of_copies.port;
  auto mesh = sync::make_gloo_connect(of_mesh, clock);
  if (!mesh) return mesh.error();
  auto copies = sync::make_gloo_connect(of_copies, clock);
  if (!copies) return copies.error();
  return Wires{std::move(mesh).value(), std::move(copies).value()};
}

Result<std::unique_ptr<DecisionLog>> open_decisions(const Config& config, bool dry_run) {
  if (dry_run || config.log.decisions == "off") return make_null_decision_log();
  return open_decision_log(config.device.data_dir + "/decisions.jsonl", config.log.decisions_max,
                           config.log.decisions == "views" ? Recorded::views : Recorded::rounds);
}

std::unique_ptr<TopicWatch> make_topic_watch(const Config& config, bool dry_run, const Clock& clock,
                                             NodeStatus& status) {
  if (config.source.type != "kafka") return nullptr;
  std::vector<TopicWatch::Topic> topics;
  for (const auto& topic : config.source.topics) topics.push_back({topic});
  if (!log_is_own(config, dry_run)) topics.push_back({ControlTopic::name_of(config.job.name), true});
  std::vector<std::string> names;
  names.reserve(topics.size());
  for (const auto& topic : topics) names.push_back(topic.name);
  return std::make_unique<TopicWatch>(
      clock, status, std::move(topics),
      stream::make_topic_lookup(config.source.kafka_properties, std::move(names)));
}

}  // namespace rivulet::runtime
