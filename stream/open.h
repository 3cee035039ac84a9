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

/// Opening the things of this folder. The only header of stream/ that wirings need besides the interfaces.
namespace rivulet::stream {

using Properties = std::vector<std::pair<std::string, std::string>>;  ///< librdkafka's own names, in order

/// A partition as the user wrote it.
struct TopicPartition {
  std::string topic;
  PartitionId id;
};

/// Where to begin a partition that no state knows.
struct StartOffset {
  enum class Kind : std::uint8_t { earliest, latest, absolute } kind = Kind::earliest;
  std::int64_t offset = 0;
};

struct KafkaSourceConfig {
  Properties properties;  ///< whole [source.kafka.properties]; what losing no row asks is added where unset
  std::string group_id;   ///< for commits only: rivulet.<job>
  std::string client_id;
  std::vector<std::string> topics;  ///< of the job, as PartitionId::topic counts them
  StartOffset start;                ///< of a partition that is assigned without a cursor
  Duration open_deadline = std::chrono::seconds(10);
  bool count_gaps = false;  ///< after a retention cut: resume behind the gap, instead of stopping
  /// Remembers of each partition a record that was read, so that a topic made anew is found out after a
  /// restart, too. Empty: only while the process lives.
  std::string anchor_file;
  Duration anchor_every = std::chrono::seconds(30);  ///< how often that record is looked up again
  Duration anchor_hold = std::chrono::seconds(2);    ///< what newer records wait for an answer, at most
};

/// A consumer with assign() at absolute offsets. Connects lazily; a topic or partition that does not exist is
/// an `unavailable` of poll() within open_deadline, naming it. Offsets are never reset: a partition stops
/// (PartitionState) when its next offset was deleted unread and count_gaps is not set, when it lies beyond
/// the end, and when its topic is another one under the same name (kafka/same_log.h). Property errors:
/// invalid_config at once, with librdkafka's words.
Result<std::unique_ptr<RecordSource>> open_kafka_source(const KafkaSourceConfig&, const Clock&, MetricsSink&);

/// A data set from a folder or file (see dataset.h), all of it in every partition, `rows_per_second` each
/// (0 = as fast as asked).
struct FileSourceConfig {
  std::string path;
  std::string format;  ///< of the records: raw, csv, json
  double rows_per_second = 0;
  bool repeat = false;
  std::uint64_t seed = 1;
};
Result<std::unique_ptr<RecordSource>> open_file_source(const FileSourceConfig&, const Clock&);

/// Learnable rows from a seed: y = one-hot argmax or linear of hidden weights plus noise. In the `raw` f32
/// layout (f32 label, f32 features), rate as a function of time so that streams can change and fall silent.
struct SyntheticSourceConfig {
  std::size_t columns = 16;
  std::uint32_t classes = 0;  ///< 0 = regression
  std::uint64_t seed = 1;
  std::function<double(TimePoint)> rows_per_second;  ///< per partition; piecewise constant
  bool blank = false;                                ///< all rows are zeros: for who only counts them
};
Result<std::unique_ptr<RecordSource>> open_synthetic_source(const SyntheticSourceConfig&, const Clock&);

/// Records given one by one with their due time: exact replays and tests. `partitions`: those that there are.
struct ScriptedRecord {
  TimePoint due;
  PartitionId partition;
  std::int64_t offset = 0;
  std::vector<std::byte> value;
  bool tombstone = false;
};
std::unique_ptr<RecordSource> open_scripted_source(std::vector<PartitionId> partitions,
                                                   std::vector<ScriptedRecord> records, const Clock&);

/// The control log over one Kafka topic that must have exactly one partition.
struct KafkaLogConfig {
  Properties properties;
  std::string topic;  ///< rivulet.<job>.control
  std::string client_id;
  bool create = true;  ///< try the Admin API when it is missing (needs a broker that has it)
  Duration open_deadline = std::chrono::seconds(10);
};
/// poll() errors: unavailable naming the topic, and the exact command that creates it, if it is missing and
/// cannot be created; unavailable "has 3 partitions, exactly one is allowed" otherwise.
Result<std::unique_ptr<OrderedLog>> open_kafka_log(const KafkaLogConfig&);

/// Lets librdkafka itself judge every property; returns one message for each it refuses.
std::vector<std::string> check_kafka_properties(const Properties&);
/// "2.0.2"
std::string kafka_client_version();

/// Which offsets a partition holds: [low, high).
struct LogEnds {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
/// Of each partition, in order, asked from its leader. Errors: unavailable (names topic and partition).
Result<std::vector<LogEnds>> log_ends(const Properties&, const std::vector<TopicPartition>& partitions,
                                      Duration deadline);

/// The names of all topics that the user may see, in no order. Errors: unavailable (no broker answers).
Result<std::vector<std::string>> list_topics(const Properties&, Duration deadline);
/// The jobs whose control topics are among them.
std::vector<std::string> jobs_among(const std::vector<std::string>& topics);

/// How many partitions a topic has; nullopt: there is no such topic. Asking does not make it. Errors:
/// unavailable (no broker answers; the user may not see the topic).
Result<std::optional<int>> find_topic(const Properties&, const std::string& topic, Duration deadline);
/// The same where it must be there. Errors: unavailable, also if it is not.
Result<int> partition_count(const Properties&, const std::string& topic, Duration deadline);

}  // namespace rivulet::stream
