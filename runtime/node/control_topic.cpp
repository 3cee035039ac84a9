#include "runtime/node/control_topic.h"

#include <fmt/format.h>

#include "runtime/node/node_config.h"
#include "stream/open.h"

namespace rivulet::runtime {
namespace {

constexpr Duration answer_deadline = std::chrono::seconds(10);

}  // namespace

std::string ControlTopic::name_of(const std::string& job) {
  return "rivulet." + job + ".control";
}

ControlTopic::ControlTopic(std::string job, std::unique_ptr<OrderedLog> log, Pause pause)
    : job_(std::move(job)), log_(std::move(log)), pause_(std::move(pause)), reader_(job_) {}

Result<ControlTopic> ControlTopic::open(const Config& config, bool create, Pause pause) {
  const auto& properties = config.source.kafka_properties;
  if (!has_brokers(config))
    return Error{ErrorCode::invalid_config, fmt::format("topic \"{}\": no brokers given; use --brokers, or "
                                                        "source.kafka.properties.bootstrap.servers",
                                                        name_of(config.job.name))};
  if (!create) {
    const auto there = stream::partition_count(properties, name_of(config.job.name), answer_deadline);
    if (!there) return there.error();
  }
  auto log = stream::open_kafka_log({.properties = properties,
                                     .topic = name_of(config.job.name),
                                     .client_id = "rivulet-" + config.device.id + "-reader",
                                     .create = create,
                                     .open_deadline = answer_deadline});
  if (!log) return log.error();
  return ControlTopic(config.job.name, std::move(log).value(), std::move(pause));
}

Status ControlTopic::read_all(Duration deadline) {
  const RealClock clock;
  TimePoint heard = clock.now();
  while (!log_->caught_up()) {
    const auto read = next();
    if (!read) return read.error();
    if (read.value()) {
      heard = clock.now();
      continue;
    }
    if (clock.now() - heard >= deadline)
      return Error{ErrorCode::unavailable,
                   fmt::format("topic \"{}\" could not be read to its end: no record for {} s", name_of(job_),
                               to_seconds(deadline))};
    pause_();
  }
  if (reader_.understands()) return ok();
  return Error{ErrorCode::unavailable, fmt::format("topic \"{}\" begins at offset {}: its oldest records "
                                                   "have been deleted, and no later record replaces them",
                                                   name_of(job_), reader_.first_offset())};
}

Result<bool> ControlTopic::next() {
  const auto entries = log_->poll(1);
  if (!entries && entries.error().code != ErrorCode::source_lost) return entries.error();
  if (!entries || entries.value().empty()) return false;
  last_ = reader_.take(entries.value().front());
  return true;
}

Status ControlTopic::append(const sync::membership::ControlRecord& record) {
  const auto bytes = encode(record, job_);
  return bytes ? log_->append(bytes.value()) : bytes.error();
}

}  // namespace rivulet::runtime
