#include "stream/kafka/opening.h"

#include <fmt/format.h>

namespace rivulet::stream::kafka {

std::string name_of(const TopicPartition& partition) {
  return fmt::format("topic \"{}\", partition {}", partition.topic, partition.id.partition);
}

Opening::Opening(const KafkaSourceConfig& config, const Clock& clock)
    : config_(config),
      clock_(clock),
      brokers_(brokers_of(config.properties)),
      deadline_(clock.now() + config.open_deadline),
      resume_(config.resume) {}

Result<bool> Opening::not_yet(const std::string& why) const {
  if (clock_.now() < deadline_) return false;
  return Error{ErrorCode::unavailable, why};
}

Result<bool> Opening::check_topics(rd_kafka_s* client, Duration patience, const std::string& last_words) {
  std::map<std::string, int> counts;
  for (const auto& partition : config_.partitions) {
    if (!counts.contains(partition.topic)) {
      const auto count = partitions_of(client, partition.topic, patience);
      if (!count)
        return not_yet(fmt::format("no broker answered at {} within {:.0f} s: {} ({})", brokers_,
                                   to_seconds(config_.open_deadline), last_words, count.error().message));
      if (!count.value())
        return not_yet(fmt::format("topic \"{}\" does not exist on {}", partition.topic, brokers_));
      counts[partition.topic] = *count.value();
    }
    if (const int count = counts[partition.topic];
        partition.id.partition < 0 || partition.id.partition >= count)
      return Error{ErrorCode::unavailable,
                   fmt::format("{} does not exist: the topic has {} partition{}, 0 to {}, on {}",
                               name_of(partition), count, count == 1 ? "" : "s", count - 1, brokers_)};
  }
  return true;
}

std::int64_t Opening::start_of(const TopicPartition& partition, Watermarks marks) const {
  if (const auto resumed = resume_.find(partition.id); resumed != resume_.end()) return resumed->second;
  switch (config_.start.kind) {
    case StartOffset::Kind::earliest: return marks.low;
    case StartOffset::Kind::latest: return marks.high;
    case StartOffset::Kind::absolute: break;
  }
  return config_.start.offset;
}

Result<bool> Opening::attempt(rd_kafka_s* client, Duration patience, const std::string& last_words) {
  if (!topics_checked_) {
    const auto checked = check_topics(client, patience, last_words);
    if (!checked || !checked.value()) return checked;
    topics_checked_ = true;
  }
  const TimePoint until =
      clock_.now() + patience;  // of many partitions, so many as fit; the next attempt continues
  while (offsets_.size() < config_.partitions.size()) {
    if (!offsets_.empty() && clock_.now() >= until) return false;
    const auto& partition = config_.partitions[offsets_.size()];
    const auto marks = query_watermarks(client, partition.topic, partition.id.partition, patience);
    if (!marks) {
      // librdkafka believes its cached metadata: a partition that had no leader when it looked stays without
      // one until somebody asks for metadata again.
      topics_checked_ = false;
      return not_yet(fmt::format("{}: no leader answers: {}", name_of(partition), marks.error().message));
    }
    offsets_.push_back(start_of(partition, marks.value()));
    watermarks_.push_back(marks.value());
  }
  return true;
}

}  // namespace rivulet::stream::kafka
