#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/nearest.h"
#include "stream/kafka/notices.h"
#include "stream/kafka/producer.h"
#include "stream/open.h"
#include "stream/topics.h"

namespace rivulet::stream {
namespace {

using namespace kafka;

// A broker answers as soon as it has a record, so a long wait adds no latency. The library's default of two
// requests per second can send more bytes than synchronization itself.
constexpr Default log_reader_defaults[] = {
    {"fetch.wait.max.ms", "5000"},         {"auto.offset.reset", "error"},
    {"enable.auto.offset.store", "false"}, {"check.crcs", "true"},
    {"socket.keepalive.enable", "true"},   {"isolation.level", "read_committed"},
    {"enable.partition.eof", "true"},      {"queued.max.messages.kbytes", "4096"}};

std::string job_of(const std::string& topic) {
  const auto jobs = jobs_among({topic});
  return jobs.empty() ? topic : jobs.front();
}

/// librdkafka cannot request metadata without blocking, and poll() must not block. So a separate thread opens
/// the log, hands it over, and ends. Appended records are queued until then: a producer that names a missing
/// topic makes some brokers create it, with their default number of partitions.
class KafkaLog final : public OrderedLog {
 public:
  explicit KafkaLog(const KafkaLogConfig& config)
      : config_(config), notices_(brokers_of(config.properties), metrics_) {}
  ~KafkaLog() override;
  KafkaLog(const KafkaLog&) = delete;
  KafkaLog& operator=(const KafkaLog&) = delete;
  Status start();

  Status append(std::span<const std::byte> bytes) override;
  Result<std::span<const LogEntry>> poll(std::size_t max_entries) override;
  [[nodiscard]] bool caught_up() const override { return stage_ == Stage::open && caught_up_; }
  [[nodiscard]] std::vector<std::string> other_jobs() const override {
    return stage_ == Stage::open ? other_jobs_ : std::vector<std::string>();
  }

 private:
  enum class Stage : std::uint8_t { opening, open, failed };

  // opener thread
  void run_opener();
  Status open();
  Status find_topic();
  Status create() const;
  void look_for_other_jobs();
  Status connect_consumer(const Properties& properties);
  Status assign_from_beginning();
  Finding find_end();
  Duration next_patience();
  [[nodiscard]] bool resume() const { return !stop_.load() && clock_.now() < deadline_; }
  [[nodiscard]] Error creation_config(const std::string& why) const;

  // owner
  Status write(std::span<const std::byte> bytes);
  void read(std::size_t max_entries);
  void take(Message message);
  void note_error(const rd_kafka_message_t& message);

  static constexpr std::size_t max_waiting = 1024;
  static constexpr Duration patience_most = std::chrono::seconds(2);
  /// Maximum time until a broker lists a created topic, which it receives from its controller.
  static constexpr Duration appears_within = std::chrono::seconds(30);
  static constexpr std::size_t other_jobs_max = 1000;
  // constant
  KafkaLogConfig config_;
  RealClock clock_;
  NullMetrics metrics_;
  // opener thread until stage_ leaves opening, then the owner
  Notices notices_;
  std::unique_ptr<Client> consumer_;
  std::unique_ptr<Producer> producer_;
  TimePoint deadline_;
  Duration patience_ = std::chrono::milliseconds(500);  ///< timeout of the next query
  std::int64_t end_at_open_ = 0;
  Error failure_;
  std::vector<std::string> other_jobs_;
  // shared
  std::atomic<Stage> stage_{Stage::opening};
  std::atomic<bool> stop_{false};
  std::mutex waiting_mutex_;
  std::deque<std::vector<std::byte>> waiting_;  ///< appended before the log was open
  // owner
  std::vector<Message> deferred_;
  std::vector<LogEntry> entries_;
  std::int64_t next_offset_ = 0;
  bool caught_up_ = false;
  std::thread opener_;
};

Status KafkaLog::start() {
  if (auto status = connect_consumer(config_.properties); !status) return status;
  auto producer = Producer::open(config_.properties, config_.topic, config_.client_id, Duration(0),
                                 std::chrono::seconds(30));
  if (!producer) return producer.error();
  producer_ = std::move(producer).value();
  deadline_ = clock_.now() + config_.open_deadline;
  opener_ = std::thread([this] { run_opener(); });
  return ok();
}

KafkaLog::~KafkaLog() {
  stop_ = true;
  if (opener_.joinable()) opener_.join();
  // Sends a LEAVE that was just appended, without waiting long for an unreachable broker.
  if (stage_ == Stage::open) static_cast<void>(producer_->flush(std::chrono::seconds(1)));
}

void KafkaLog::run_opener() {
  const Status opened = open();
  const std::scoped_lock lock(waiting_mutex_);
  if (!opened) {
    failure_ = opened.error();
    stage_ = Stage::failed;
    return;
  }
  for (const auto& bytes : waiting_)
    if (auto status = write(bytes); !status) failure_ = status.error();
  waiting_.clear();
  stage_ = Stage::open;
}

Status KafkaLog::open() {
  if (auto status = find_topic(); !status) return status;
  if (is_embedded(consumer_->handle()))
    if (auto status = connect_consumer(for_embedded(config_.properties)); !status) return status;
  return assign_from_beginning();
}

Status KafkaLog::find_topic() {
  bool tried_to_create = false;
  std::string last = notices_.last_words();
  std::string unmade;
  Duration wait(0);
  do {
    consumer_->serve_callbacks(std::exchange(wait, std::chrono::milliseconds(50)));
    const auto count = partitions_of(consumer_->handle(), config_.topic, next_patience());
    if (!count) {
      last = fmt::format("{} ({})", notices_.last_words(), count.error().message);
      continue;
    }
    look_for_other_jobs();
    if (count.value() == 1) return ok();
    if (count.value())
      return Error{ErrorCode::unavailable,
                   fmt::format("topic \"{}\" has {} partitions, exactly one is allowed: its records must be "
                               "totally ordered",
                               config_.topic, *count.value())};
    if (tried_to_create) continue;  // created, but not yet visible to every broker
    if (!config_.create) return creation_config("does not exist");
    const Status made = create();
    tried_to_create = bool(made);
    if (made) deadline_ = std::max(deadline_, clock_.now() + appears_within);
    unmade = made ? fmt::format("was created but no broker has listed it within {:.0f} s",
                                to_seconds(appears_within))
                  : "does not exist and " + made.error().message;
    if (!made && made.error().code != ErrorCode::timed_out) break;  // a silent broker is queried again
  } while (resume());
  if (!unmade.empty()) return creation_config(unmade);
  return Error{ErrorCode::unavailable,
               fmt::format("no broker answered at {} within {:.0f} s: {}", brokers_of(config_.properties),
                           to_seconds(config_.open_deadline), last)};
}

/// The names only serve messages, so a failure is ignored.
void KafkaLog::look_for_other_jobs() {
  if (!other_jobs_.empty()) return;
  const auto topics = topics_of(consumer_->handle(), std::chrono::milliseconds(500));
  if (!topics) return;
  other_jobs_ = jobs_among(topics.value());
  std::erase(other_jobs_, job_of(config_.topic));
  if (other_jobs_.size() > other_jobs_max) other_jobs_.resize(other_jobs_max);
}

Status KafkaLog::create() const {
  const Duration left = std::max<Duration>(deadline_ - clock_.now(), std::chrono::milliseconds(500));
  return create_topic(config_.properties, config_.topic, 1, std::min<Duration>(left, std::chrono::seconds(3)),
                      {{"message.timestamp.type", "LogAppendTime"},
                       {"cleanup.policy", "delete"},
                       {"retention.ms", "-1"},  // a deleted HELLO would split the group
                       {"retention.bytes", "-1"}});
}

Error KafkaLog::creation_config(const std::string& why) const {
  const auto brokers = brokers_of(config_.properties);
  const std::string job = job_of(config_.topic);
  const std::string meant = nearest(job, other_jobs_);
  return {
      ErrorCode::unavailable,
      fmt::format(
          "topic \"{}\" {}{}. Create it with: kafka-topics.sh --create --topic {} --partitions 1 --config "
          "message.timestamp.type=LogAppendTime --config retention.ms=-1 --bootstrap-server {}; or, "
          "without Kafka: rivulet "
          "broker "
          "--job {} --topic NAME:PARTITIONS",
          config_.topic, why, meant.empty() ? "" : " - did you mean job '" + meant + "'?", config_.topic,
          brokers, job)};
}

Status KafkaLog::connect_consumer(const Properties& properties) {
  // Joins no group and commits nothing, but librdkafka requires a group for assign(). Uses the job's consumer
  // group, so that users need no second ACL entry.
  std::string group = config_.topic;
  if (group.ends_with(".control")) group.erase(group.size() - 8);
  std::vector<Default> defaults(std::begin(log_reader_defaults), std::end(log_reader_defaults));
  defaults.emplace_back("group.id", group);
  if (!config_.client_id.empty()) defaults.emplace_back("client.id", config_.client_id);
  consumer_.reset();
  auto client = Client::open(ClientKind::consumer, properties, defaults, notices_);
  if (!client) return client.error();
  consumer_ = std::move(client).value();
  return ok();
}

/// Doubles the timeout per attempt, so that distant brokers and busy machines can answer within one of them.
Duration KafkaLog::next_patience() {
  return std::exchange(patience_, std::min(2 * patience_, patience_most));
}

Finding KafkaLog::find_end() {
  Finding end;
  const Question about{.partition = {config_.topic, {0, 0}}};
  survey(consumer_->handle(), std::span(&about, 1), next_patience(), stop_,
         [&](Finding found) { end = std::move(found); });
  return end;
}

Status KafkaLog::assign_from_beginning() {
  std::string last = "no answer";
  do {
    const Finding end = find_end();
    if (end.kind != Finding::Kind::marks) {
      consumer_->serve_callbacks(std::chrono::milliseconds(50));
      last = why_unread({config_.topic, {0, 0}}, end, notices_.words_about(end.leader.address),
                        brokers_of(config_.properties));
      continue;
    }
    end_at_open_ = end.marks.high;
    caught_up_ = end.marks.low >= end_at_open_;
    PartitionList list;
    list.add(config_.topic, 0, end.marks.low);
    if (const auto status = assign(consumer_->handle(), list); !status) {
      last = status.error().message;
      continue;
    }
    producer_->look_up(std::chrono::milliseconds(500));
    return ok();
  } while (resume());
  return Error{ErrorCode::unavailable, last};
}

Status KafkaLog::write(std::span<const std::byte> bytes) {
  const auto sent = producer_->send(0, bytes, 0);
  if (!sent) return sent.error();
  if (sent.value()) return ok();
  return Error{ErrorCode::unavailable,
               fmt::format("topic \"{}\": too many records are waiting to be written", config_.topic)};
}

Status KafkaLog::append(std::span<const std::byte> bytes) {
  if (stage_ == Stage::open) return write(bytes);
  const std::scoped_lock lock(waiting_mutex_);
  if (stage_ == Stage::open) return write(bytes);
  if (stage_ == Stage::failed) return failure_;
  if (waiting_.size() == max_waiting)
    return Error{ErrorCode::unavailable,
                 fmt::format("topic \"{}\": not open yet, and its queue of {} records is full", config_.topic,
                             max_waiting)};
  waiting_.emplace_back(bytes.begin(), bytes.end());
  return ok();
}

Result<std::span<const LogEntry>> KafkaLog::poll(std::size_t max_entries) {
  entries_.clear();
  deferred_.clear();
  const Stage stage = stage_;
  if (stage == Stage::opening) return std::span<const LogEntry>();
  if (stage == Stage::failed || !failure_.message.empty()) return failure_;
  if (auto status = producer_->serve(Duration(0)); !status)
    return Error{ErrorCode::unavailable, status.error().message};
  read(max_entries);
  if (!entries_.empty()) return std::span<const LogEntry>(entries_);
  if (!notices_.hopeless().empty()) return Error{ErrorCode::unavailable, notices_.hopeless()};
  if (auto notice = notices_.take(clock_.now())) return *notice;
  return std::span<const LogEntry>();
}

void KafkaLog::read(std::size_t max_entries) {
  // Errors are not entries, so they need their own bound.
  for (std::size_t tries = 0; entries_.size() < max_entries && tries < max_entries + 16; ++tries) {
    Message message(rd_kafka_consumer_poll(consumer_->handle(), 0));
    if (!message) return;
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
      caught_up_ = true;  // offsets before the end may be gaps, so the last record does not show it
    else if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
      note_error(*message);
    else
      take(std::move(message));
  }
}

void KafkaLog::note_error(const rd_kafka_message_t& message) {
  if (message.err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET ||
      message.err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE) {
    failure_ = {
        ErrorCode::bad_record,
        fmt::format("topic \"{}\": offset {} no longer exists: the topic was recreated, truncated, or "
                    "lost its last records while this device read it, so the group's members are unknown",
                    config_.topic, next_offset_)};
    return;
  }
  const std::string words =
      message.payload != nullptr ? rd_kafka_message_errstr(&message) : words_of(message.err);
  notices_.record_error(message.err, fmt::format("topic \"{}\": {}", config_.topic, words));
}

void KafkaLog::take(Message message) {
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  entries_.push_back({.offset = message->offset,
                      .append_time_ms = rd_kafka_message_timestamp(message.get(), &type),
                      .bytes = {static_cast<const std::byte*>(message->payload), message->len}});
  next_offset_ = message->offset + 1;
  if (next_offset_ >= end_at_open_) caught_up_ = true;
  deferred_.push_back(std::move(message));
}

}  // namespace

Result<std::unique_ptr<OrderedLog>> open_kafka_log(const KafkaLogConfig& config) {
  auto log = std::make_unique<KafkaLog>(config);
  if (auto status = log->start(); !status) return status.error();
  return std::unique_ptr<OrderedLog>(std::move(log));
}

}  // namespace rivulet::stream
