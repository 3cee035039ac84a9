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

/// Shared wrappers around librdkafka's C interface. Only files in this directory include it.
namespace rivulet::stream::kafka {

/// A reader is a consumer with separate queues for records and callbacks, so that callbacks are served while
/// records are not fetched. Only readers report statistics.
enum class ClientKind : std::uint8_t { consumer, reader, producer };

/// Receives librdkafka's events. Called by the thread that serves the client, never by librdkafka's own
/// threads.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void client_error(int code, std::string_view words) noexcept = 0;
  /// Reports one partition of a successful commit; committed() follows.
  virtual void accepted(std::string_view /*topic*/, std::int32_t /*partition*/,
                        std::int64_t /*offset*/) noexcept {}
  virtual void committed(int /*code*/) noexcept {}
  virtual void delivered(int /*code*/, std::int32_t /*partition*/, std::size_t /*bytes*/) noexcept {}
  /// Readers only, every statistics.interval.ms; the text is valid during the call.
  virtual void statistics(std::string_view /*json*/) noexcept {}
};

/// For clients that report errors only through the results of their calls.
struct NobodyListens final : Listener {
  void client_error(int, std::string_view) noexcept override {}
};

/// A property with our default value. A value set by the user overrides it.
using Default = std::pair<std::string_view, std::string_view>;

/// One librdkafka handle, destroyed with this object within about 4 s: 1 s for commits whose coordinator is
/// unreachable, 3 s for librdkafka's own shutdown. Discards a producer's unwritten records.
class Client {
 public:
  /// Errors: invalid_config (every property that librdkafka rejects, with its message; no bootstrap.servers).
  static Result<std::unique_ptr<Client>> open(ClientKind kind, const Properties& properties,
                                              std::span<const Default> defaults, Listener& listener);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  [[nodiscard]] rd_kafka_s* handle() const noexcept { return handle_; }
  /// Runs the callbacks of a reader, or of a consumer without an assignment; waits up to `wait` for one.
  void serve_callbacks(Duration wait) noexcept;
  /// Makes the destructor wait for the answers to commits in flight.
  void expect_commits() noexcept { commits_ = true; }

 private:
  Client(ClientKind kind, rd_kafka_s* handle) : kind_(kind), handle_(handle) {}
  ClientKind kind_;
  rd_kafka_s* handle_;
  bool commits_ = false;
};

/// Destroys a handle with librdkafka's `flags`, within 3 s: a slower shutdown continues on a background
/// thread.
void end(rd_kafka_s* handle, int flags) noexcept;

/// Configured value of a property; empty if it is not set.
std::string property(const Properties& properties, std::string_view name);
/// "localhost:9092", for messages.
std::string brokers_of(const Properties& properties);

/// librdkafka's description of the error `code`.
std::string words_of(int code);

/// Returns the number of partitions of a topic; nullopt if it does not exist (or is not visible). Blocks up
/// to `timeout`. Errors: unavailable (no answer).
Result<std::optional<int>> partitions_of(rd_kafka_s* client, const std::string& topic, Duration timeout);

/// Returns the names of all topics visible to the user. Blocks up to `timeout`. Errors: unavailable (no
/// answer).
Result<std::vector<std::string>> topics_of(rd_kafka_s* client, Duration timeout);

struct Watermarks {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
/// Sends the leader a small request and waits up to `timeout` for any answer. Errors: unavailable.
Status query_leader(rd_kafka_s* client, const std::string& topic, std::int32_t partition, Duration timeout);
/// Returns the watermarks of each partition, in order, queried from their leaders. Blocks up to `timeout`; a
/// single missing answer fails the call. Avoids rd_kafka_query_watermark_offsets(), which ignores its timeout
/// before librdkafka 2.3. Errors: unavailable.
Result<std::vector<Watermarks>> query_watermarks(rd_kafka_s* client,
                                                 std::span<const TopicPartition> partitions,
                                                 Duration timeout);
/// As above, for one partition.
Result<Watermarks> query_watermarks(rd_kafka_s* client, const std::string& topic, std::int32_t partition,
                                    Duration timeout);
/// Watermarks cached by the client from its fetches; -1 if unknown.
Watermarks known_watermarks(rd_kafka_s* client, const std::string& topic, std::int32_t partition) noexcept;

/// True if the broker is librdkafka's own mock. It answers a waiting fetch only when its wait time ends, so
/// fetch.wait.max.ms delays every record. Known once metadata has arrived.
bool is_embedded(rd_kafka_s* client);
/// Returns the user's properties, preceded by a short fetch.wait.max.ms (so that the user's value wins).
Properties for_embedded(const Properties& properties);

int to_ms(Duration d) noexcept;  ///< rounded up, 0 .. one day

/// A message owned by librdkafka; returned when this object is destroyed.
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
  /// The broker's error code for this partition; 0 if none.
  [[nodiscard]] int code(std::size_t i) const noexcept;
  [[nodiscard]] rd_kafka_topic_partition_list_s* get() const noexcept { return list_; }

 private:
  rd_kafka_topic_partition_list_s* list_;
};

/// Replaces the assigned partitions by these, read from their offsets. Returns when the previous ones have
/// stopped: librdkafka 2.0 aborts the process if the next assignment, or the client's shutdown, begins
/// earlier. Cost: three requests to a thread of the client, none to a broker. Errors: source_lost.
Status assign(rd_kafka_s* client, const PartitionList& list);

}  // namespace rivulet::stream::kafka
