#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "stream/open.h"

struct rd_kafka_message_s;
struct rd_kafka_s;
struct rd_kafka_topic_partition_list_s;

/// What the files of this folder share about librdkafka's C interface. Nothing outside this folder includes
/// it.
namespace rivulet::stream::kafka {

/// A reader is a consumer whose records and callbacks wait apart, so that these can be served while those are
/// not taken, and that reports statistics. Nobody reads those of the others: they make none.
enum class ClientKind : std::uint8_t { consumer, reader, producer };

/// What librdkafka reports by the way. Called on the thread that serves the client, never on its own threads.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void client_error(int code, std::string_view words) noexcept = 0;
  /// One partition of a commit that was accepted; committed() follows.
  virtual void accepted(std::string_view /*topic*/, std::int32_t /*partition*/,
                        std::int64_t /*offset*/) noexcept {}
  virtual void committed(int /*code*/) noexcept {}
  virtual void delivered(int /*code*/, std::int32_t /*partition*/, std::size_t /*bytes*/) noexcept {}
  /// Of a reader, every statistics.interval.ms; the text ends with the call.
  virtual void statistics(std::string_view /*json*/) noexcept {}
};

/// Of a client whose troubles show in what it answers.
struct NobodyListens final : Listener {
  void client_error(int, std::string_view) noexcept override {}
};

/// A setting of ours that a setting of the user replaces.
using Default = std::pair<std::string_view, std::string_view>;

/// One librdkafka handle, destroyed with this object, in some 4 s at most: 1 s for commits whose coordinator
/// is gone, and 3 s for what librdkafka waits for itself. A producer's records that are not written yet are
/// dropped.
class Client {
 public:
  /// Errors: invalid_config (every property that librdkafka refuses, in its words; no bootstrap.servers).
  static Result<std::unique_ptr<Client>> open(ClientKind kind, const Properties& properties,
                                              std::span<const Default> defaults, Listener& listener);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  [[nodiscard]] rd_kafka_s* handle() const noexcept { return handle_; }
  /// Runs the callbacks of a reader, or of a consumer that nothing is assigned to; waits up to `wait` for
  /// one.
  void serve_callbacks(Duration wait) noexcept;
  /// Commits may be on their way: the end waits for their answers.
  void expect_commits() noexcept { commits_ = true; }

 private:
  Client(ClientKind kind, rd_kafka_s* handle) : kind_(kind), handle_(handle) {}
  ClientKind kind_;
  rd_kafka_s* handle_;
  bool commits_ = false;
};

/// Ends a handle with librdkafka's `flags`, in 3 s at most: what takes longer is left behind on a thread.
void end(rd_kafka_s* handle, int flags) noexcept;

/// Value of a property as the user wrote it; empty if it is not set.
std::string property(const Properties& properties, std::string_view name);
/// "localhost:9092", for messages.
std::string brokers_of(const Properties& properties);

/// How librdkafka calls its answer `code`, in words.
std::string words_of(int code);

/// What the broker knows about a topic; nullopt: it does not exist (or may not be seen). Blocks up to
/// `timeout`. Errors: unavailable (no answer).
Result<std::optional<int>> partitions_of(rd_kafka_s* client, const std::string& topic, Duration timeout);

/// The names of all topics that the user may see. Blocks up to `timeout`. Errors: unavailable (no answer).
Result<std::vector<std::string>> topics_of(rd_kafka_s* client, Duration timeout);

struct Watermarks {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
/// Sends the leader a small question and waits up to `timeout` for the answer, whatever it is. Errors:
/// unavailable.
Status ask_leader(rd_kafka_s* client, const std::string& topic, std::int32_t partition, Duration timeout);
/// Of each partition, in order, asked from their leaders. Blocks up to `timeout`; one that is not answered
/// fails all. Not by rd_kafka_query_watermark_offsets(), which forgets the time before librdkafka 2.3.
/// Errors: unavailable.
Result<std::vector<Watermarks>> query_watermarks(rd_kafka_s* client,
                                                 std::span<const TopicPartition> partitions,
                                                 Duration timeout);
/// The same of one.
Result<Watermarks> query_watermarks(rd_kafka_s* client, const std::string& topic, std::int32_t partition,
                                    Duration timeout);
/// What the client remembers from its fetches; -1 where it does not know.
Watermarks known_watermarks(rd_kafka_s* client, const std::string& topic, std::int32_t partition) noexcept;

/// True if the broker is librdkafka's own mock. It answers a waiting fetch only when its time is over, so
/// that fetch.wait.max.ms is the delay of every record there. Known once metadata came.
bool is_embedded(rd_kafka_s* client);
/// The user's properties with a short fetch.wait.max.ms in front (so that the user's own wins).
Properties for_embedded(const Properties& properties);

int to_ms(Duration d) noexcept;  ///< rounded up, 0 .. one day

/// A record as librdkafka lends it; given back with this object.
struct DestroyMessage {
  void operator()(rd_kafka_message_s* message) const noexcept;
};
using Message = std::unique_ptr<rd_kafka_message_s, DestroyMessage>;

/// A list of partitions for librdkafka's calls.
class PartitionList {
 public:
  PartitionList();
  ~PartitionList();
  PartitionList(const PartitionList&) = delete;
  PartitionList& operator=(const PartitionList&) = delete;
  void add(const std::string& topic, std::int32_t partition, std::int64_t offset);
  [[nodiscard]] std::int64_t offset(std::size_t i) const noexcept;
  /// What the broker says of it; 0: nothing is wrong.
  [[nodiscard]] int code(std::size_t i) const noexcept;
  [[nodiscard]] rd_kafka_topic_partition_list_s* get() const noexcept { return list_; }

 private:
  rd_kafka_topic_partition_list_s* list_;
};

/// Reads these partitions from their offsets, instead of those before. Returns when those before have
/// stopped: librdkafka 2.0 ends the process when the next assignment, or the end of the client, comes
/// earlier. Cost: three questions to a thread of the client, none to a broker. Errors: source_lost.
Status assign(rd_kafka_s* client, const PartitionList& list);

}  // namespace rivulet::stream::kafka
