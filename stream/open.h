#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/log.h"
#include "core/metrics.h"
#include "stream/source.h"

/// Opens the implementations in stream/. Callers need only this header and the interfaces of stream/.
namespace rivulet::stream {

using Properties = std::vector<std::pair<std::string, std::string>>;  ///< by librdkafka's names, in order

/// A partition as configured.
struct TopicPartition {
  std::string topic;
  PartitionId id;
};

/// Where to begin a partition that no state covers.
struct StartOffset {
  enum class Kind : std::uint8_t { earliest, latest, absolute } kind = Kind::earliest;
  std::int64_t offset = 0;
};

struct KafkaSourceConfig {
  Properties properties;  ///< all of [source.kafka.properties]; unset ones get defaults that lose no rows
  std::string group_id;   ///< for commits only: rivulet.<job>
  std::string client_id;
  std::vector<std::string> topics;  ///< of the job, indexed by PartitionId::topic
  StartOffset start;                ///< for a partition assigned without a cursor
  Duration open_deadline = std::chrono::seconds(10);
  bool count_gaps = false;  ///< after deletion by retention: resume after the gap instead of stopping
  /// File with one record per partition that was read, which reveals a recreated topic after a restart.
  /// Without it, a recreated topic is detected only while the process runs.
  std::string anchor_file;
  Duration anchor_every = std::chrono::seconds(30);     ///< interval between checks of that record
  Duration anchor_defer_max = std::chrono::seconds(2);  ///< maximum time that newer records wait for a check
};

/// A consumer with assign() at absolute offsets. Connects lazily. A missing topic or partition is an
/// `unavailable` error of poll() within open_deadline; it names the topic. Offsets are never reset. A
/// partition stops (PartitionState) when its next offset was deleted unread and count_gaps is not set, when
/// its next offset is beyond the end, or when its topic was recreated (kafka/same_log.h). Invalid properties:
/// invalid_config immediately, with librdkafka's message.
Result<std::unique_ptr<RecordSource>> open_kafka_source(const KafkaSourceConfig&, const Clock&, MetricsSink&);

/// A data set from a directory or file (see dataset.h). Each partition plays all of it at `rows_per_second`
/// (0 = as fast as polled).
struct FileSourceConfig {
  std::string path;
  std::string format;  ///< of the records: raw, csv, json
  double rows_per_second = 0;
  bool repeat = false;
  std::uint64_t seed = 1;
};
Result<std::unique_ptr<RecordSource>> open_file_source(const FileSourceConfig&, const Clock&);

/// Learnable rows from a seed: y = one-hot argmax or linear function of hidden weights, plus noise. Uses the
/// `raw` f32 layout (f32 label, f32 features). The rate is a function of time: streams can change and pause.
struct SyntheticSourceConfig {
  std::size_t columns = 16;
  std::uint32_t classes = 0;  ///< 0 = regression
  std::uint64_t seed = 1;
  std::function<double(TimePoint)> rows_per_second;  ///< per partition; piecewise constant
  bool blank = false;                                ///< all rows are zeros: for callers that only count them
};
Result<std::unique_ptr<RecordSource>> open_synthetic_source(const SyntheticSourceConfig&, const Clock&);

/// A fixed list of records with due times, for exact replays and tests. `partitions`: all existing ones.
struct ScriptedRecord {
  TimePoint due;
  PartitionId partition;
  std::int64_t offset = 0;
  std::vector<std::byte> value;
  bool tombstone = false;
};
std::unique_ptr<RecordSource> open_scripted_source(std::vector<PartitionId> partitions,
                                                   std::vector<ScriptedRecord> records, const Clock&);

/// The control log: one Kafka topic that must have exactly one partition.
struct KafkaLogConfig {
  Properties properties;
  std::string topic;  ///< rivulet.<job>.control
  std::string client_id;
  bool create = true;  ///< create a missing topic through the Admin API (if the broker supports it)
  Duration open_deadline = std::chrono::seconds(10);
};
/// poll() errors: unavailable with the topic and the command that creates it, if it is missing and cannot be
/// created; unavailable "has 3 partitions, exactly one is allowed" otherwise.
Result<std::unique_ptr<OrderedLog>> open_kafka_log(const KafkaLogConfig&);

/// Validates every property with librdkafka; returns one message per rejected property.
std::vector<std::string> check_kafka_properties(const Properties&);
/// "2.0.2"
std::string kafka_client_version();

/// Offsets of a partition: [low, high).
struct LogEnds {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
/// Returns the ends of each partition, in order. Errors: unavailable (names topic and partition).
Result<std::vector<LogEnds>> log_ends(const Properties&, const std::vector<TopicPartition>& partitions,
                                      Duration deadline);

/// Returns the names of all topics visible to the user, unordered. Errors: unavailable (no broker answers).
Result<std::vector<std::string>> list_topics(const Properties&, Duration deadline);
/// Returns the jobs whose control topics are in `topics`.
std::vector<std::string> jobs_among(const std::vector<std::string>& topics);

/// Returns the number of partitions of a topic; nullopt if it does not exist. Never creates it. Errors:
/// unavailable (no broker answers; no permission to see the topic).
Result<std::optional<int>> find_topic(const Properties&, const std::string& topic, Duration deadline);
/// As find_topic(), for a topic that must exist. Errors: unavailable, also if it does not exist.
Result<int> partition_count(const Properties&, const std::string& topic, Duration deadline);

}  // namespace rivulet::stream
