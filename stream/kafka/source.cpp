#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include <algorithm>

#include "core/check.h"
#include "stream/kafka/committer.h"
#include "stream/kafka/notices.h"
#include "stream/kafka/offset_resolver.h"
#include "stream/kafka/partitions.h"
#include "stream/kafka/refill.h"
#include "stream/kafka/same_log.h"
#include "stream/open.h"

namespace rivulet::stream {
namespace {

using namespace kafka;

/// Conservative consumer defaults. Offsets belong to the agreed state, so librdkafka must not commit or reset
/// them.
constexpr Default reader_defaults[] = {
    {"auto.offset.reset", "error"},          {"enable.auto.offset.store", "false"},
    {"enable.partition.eof", "false"},       {"check.crcs", "true"},
    {"socket.keepalive.enable", "true"},     {"isolation.level", "read_committed"},
    {"queued.max.messages.kbytes", "16384"}, {"statistics.interval.ms", "2000"}};

/// A reader without commits needs no group, but librdkafka's assign() requires one. It is never joined.
std::string group_of(const KafkaSourceConfig& config) {
  return config.group_id.empty() ? "rivulet.reader" : config.group_id;
}

class KafkaSource final : public RecordSource {
 public:
  KafkaSource(const KafkaSourceConfig& config, const Clock& clock, MetricsSink& metrics);
  Status connect(const Properties& properties);

  Result<std::span<const Record>> poll(std::size_t max_records, Duration max_wait) override;
  void keep_alive() override;
  Status commit(std::span<const NextOffset> positions) override;
  Status assign(const Assignment& assignment) override;
  [[nodiscard]] std::span<const PartitionState> partitions() const noexcept override {
    return partitions_.states();
  }
  [[nodiscard]] std::string_view unreachable() const noexcept override { return notices_.unreachable(); }
  std::vector<Gap> take_gaps() override { return partitions_.take_gaps(); }
  [[nodiscard]] bool exhausted() const noexcept override { return false; }
  [[nodiscard]] TimePoint next_due() const noexcept override {
    return same_log_.defers() ? TimePoint::min() : TimePoint::max();
  }

 private:
  Result<std::span<const Record>> read(std::size_t max_records, Duration max_wait);
  Status resolve(TimePoint now);
  Status start_reading();
  void defer_records(TimePoint now);
  void release();
  void resume_client();
  void fetch(std::size_t max_records, Duration max_wait);
  void accept(Partition& partition, Message message);
  void note_error(const rd_kafka_message_t& message);
  void check_logs(Duration wait);
  void refresh(TimePoint now);

  // constant
  KafkaSourceConfig config_;
  const Clock& clock_;
  // ingest thread
  Notices notices_;
  std::unique_ptr<Client> client_;
  std::optional<Refill> refill_;  ///< for client_
  Committer committer_;
  Partitions partitions_;
  OffsetResolver resolver_;
  SameLog same_log_;
  bool opened_ = false;            ///< something was read once
  bool start_due_ = true;          ///< the set of readable partitions differs from librdkafka's assignment
  std::vector<Message> deferred_;  ///< owns the bytes of records_
  std::vector<Record> records_;
  Message carried_;                          ///< received while paused; first record of the next poll
  std::optional<TimePoint> deferred_since_;  ///< start of the time without space
  bool client_paused_ = false;
  TimePoint next_refresh_{};
};

KafkaSource::KafkaSource(const KafkaSourceConfig& config, const Clock& clock, MetricsSink& metrics)
    : config_(config),
      clock_(clock),
      notices_(brokers_of(config.properties), metrics),
      committer_(config.properties, config.group_id, config.client_id, notices_),
      partitions_(config_, metrics),
      resolver_(config_, partitions_, notices_),
      same_log_({.properties = config.properties,
                 .group_id = group_of(config),
                 .file = config.anchor_file,
                 .every = config.anchor_every,
                 .defer_max = config.anchor_defer_max},
                clock, partitions_) {}

Status KafkaSource::connect(const Properties& properties) {
  std::vector<Default> defaults(std::begin(reader_defaults), std::end(reader_defaults));
  const std::string group = group_of(config_);
  defaults.emplace_back("group.id", group);
  if (!config_.client_id.empty()) defaults.emplace_back("client.id", config_.client_id);
  const auto more = Refill::defaults();
  defaults.insert(defaults.end(), more.begin(), more.end());
  refill_.reset();
  client_.reset();
  auto client = Client::open(ClientKind::reader, properties, defaults, notices_);
  if (!client) return client.error();
  client_ = std::move(client).value();
  refill_.emplace(client_->handle());
  return ok();
}

Result<std::span<const Record>> KafkaSource::poll(std::size_t max_records, Duration max_wait) {
  records_.clear();
  deferred_.clear();
  auto polled = read(max_records, max_wait);
  partitions_.show();
  return polled;
}

Result<std::span<const Record>> KafkaSource::read(std::size_t max_records, Duration max_wait) {
  const TimePoint now = clock_.now();
  if (auto status = resolve(now); !status) return status.error();
  if (!opened_) {
    client_->serve_callbacks(Duration(0));
    resolver_.wait(max_wait);
    return std::span<const Record>();
  }
  if (max_records == 0)
    defer_records(now);
  else
    fetch(max_records, max_wait);
  check_logs(max_wait);
  refresh(now);
  if (!records_.empty()) return std::span<const Record>(records_);
  if (!notices_.hopeless().empty()) return Error{ErrorCode::unavailable, notices_.hopeless()};
  if (auto notice = notices_.take(now)) return *notice;
  return std::span<const Record>();
}

void KafkaSource::keep_alive() {
  const TimePoint now = clock_.now();
  defer_records(now);
  check_logs(Duration(0));
  refresh(now);
  partitions_.show();
}

/// Reads resolved partitions without waiting for the others.
Status KafkaSource::resolve(TimePoint now) {
  if (const auto silent = notices_.take_silent()) partitions_.doubt(*silent);
  const auto changed = resolver_.serve(client_->handle(), now);
  if (!changed) return changed.error();
  start_due_ = start_due_ || changed.value();
  if (!start_due_ || !resolver_.any_resolved()) return ok();
  if (!opened_ && is_embedded(client_->handle())) {
    if (resolver_.uses_client()) return ok();
    same_log_.disable();
    if (auto status = connect(for_embedded(config_.properties)); !status) return status;
  }
  opened_ = true;
  const auto started = start_reading();
  start_due_ = !started;  // on failure, retried by the next poll
  if (!started) notices_.report(started.error().message);
  return ok();
}

/// (Re)starts every partition that is not stopped, at its next offset. librdkafka discards what it has queued
/// for earlier assignments.
Status KafkaSource::start_reading() {
  resume_client();  // a pause outlives the assignment in which it was made
  PartitionList list;
  for (const auto& [id, partition] : partitions_.all())
    if (partition.is_read()) list.add(partition.name().topic, id.partition, partition.state().next_offset);
  if (auto status = kafka::assign(client_->handle(), list); !status) return status;
  carried_.reset();
  deferred_since_.reset();
  partitions_.set_paused(false);
  return ok();
}

/// A pause makes librdkafka discard its fetched records and refetch them later, so a briefly full buffer
/// should not cause one. Until then, at most one record is taken, and kept.
void KafkaSource::defer_records(TimePoint now) {
  constexpr Duration a_moment = std::chrono::milliseconds(50);
  if (!deferred_since_) deferred_since_ = now;
  partitions_.set_paused(true);
  if (!client_paused_ && now - *deferred_since_ >= a_moment) {
    PartitionList list;
    for (const auto& [id, partition] : partitions_.all()) list.add(partition.name().topic, id.partition, 0);
    client_paused_ = rd_kafka_pause_partitions(client_->handle(), list.get()) == RD_KAFKA_RESP_ERR_NO_ERROR;
  }
  if (carried_) return;
  Message message(rd_kafka_consumer_poll(client_->handle(), 0));
  if (!message) return;
  if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
    note_error(*message);
  else
    carried_ = std::move(message);
}

void KafkaSource::release() {
  deferred_since_.reset();
  partitions_.set_paused(false);
  resume_client();
}

void KafkaSource::resume_client() {
  if (!client_paused_) return;
  PartitionList list;
  for (const auto& [id, partition] : partitions_.all()) list.add(partition.name().topic, id.partition, 0);
  client_paused_ = rd_kafka_resume_partitions(client_->handle(), list.get()) != RD_KAFKA_RESP_ERR_NO_ERROR;
}

/// One message at a time: before 2.13, librdkafka's batch call is unsafe in combination with pause and seek.
void KafkaSource::fetch(std::size_t max_records, Duration max_wait) {
  if (deferred_since_) release();
  int wait_ms = to_ms(max_wait);
  while (records_.size() < max_records) {
    Message message =
        carried_ ? std::move(carried_) : Message(rd_kafka_consumer_poll(client_->handle(), wait_ms));
    if (!message) break;
    wait_ms = 0;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      note_error(*message);
      continue;
    }
    Partition* partition = partitions_.find(*message);
    // A record below the position was returned already: a broker may resend a batch after a reconnect.
    if (partition == nullptr || message->offset < partition->state().next_offset) continue;
    if (!same_log_.trusts(*partition)) {
      carried_ = std::move(message);
      break;
    }
    accept(*partition, std::move(message));
  }
  refill_->look(partitions_, clock_.now());
  for (auto& [id, partition] : partitions_.all())
    if (const auto* newest = partition.take_newest()) same_log_.passed(partition, *newest);
}

void KafkaSource::accept(Partition& partition, Message message) {
  partition.passed(*message);
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  records_.push_back(
      {.partition = partition.name().id,
       .offset = message->offset,
       .timestamp_ms = std::max<std::int64_t>(rd_kafka_message_timestamp(message.get(), &type), 0),
       .value = {static_cast<const std::byte*>(message->payload), message->len},
       .tombstone = message->payload == nullptr});
  deferred_.push_back(std::move(message));
}

void KafkaSource::note_error(const rd_kafka_message_t& message) {
  Partition* partition = partitions_.find(message);
  const bool out_of_range = message.err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET ||
                            message.err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE;
  if (out_of_range && partition != nullptr) {
    partition->invalidate();  // librdkafka has stopped it already
    SameLog::doubt(*partition);
    return;
  }
  const std::string words =
      message.payload != nullptr ? rd_kafka_message_errstr(&message) : words_of(message.err);
  const std::string where = partition != nullptr ? name_of(partition->name()) + ": " : "";
  notices_.record_error(message.err, where + words);
}

void KafkaSource::check_logs(Duration wait) {
  Partition* other = same_log_.serve(wait);
  if (auto problem = same_log_.take_problem()) notices_.report(problem->message);
  if (other == nullptr) return;
  const auto& state = other->state();
  const auto marks = query_watermarks(client_->handle(), other->name().topic, state.id.partition,
                                      std::chrono::milliseconds(250));
  other->stop_other_log(marks ? marks.value() : Watermarks{state.low_watermark, state.high_watermark});
  if (auto status = start_reading(); !status) notices_.report(status.error().message);
}

void KafkaSource::refresh(TimePoint now) {
  if (now < next_refresh_) return;
  next_refresh_ = now + std::chrono::milliseconds(100);
  client_->serve_callbacks(Duration(0));
  committer_.serve(now);
  for (const auto& [topic, partition, offset] : committer_.take_accepted())
    partitions_.committed(topic, partition, offset);
  if (partitions_.refresh(client_->handle())) notices_.answered();
  partitions_.set_blocked(notices_.blocked());
}

Status KafkaSource::commit(std::span<const NextOffset> positions) {
  if (positions.empty()) return ok();
  if (!opened_)
    return Error{ErrorCode::source_lost, "offsets cannot be committed before the first connection"};
  for (const auto& [id, offset] : positions)
    if (Partition* partition = partitions_.find(id)) partition->commit(offset);
  auto list = std::make_unique<PartitionList>();
  for (const auto& [id, partition] : partitions_.all())
    if (partition.to_commit()) list->add(partition.name().topic, id.partition, *partition.to_commit());
  return committer_.commit(std::move(list));
}

/// Assigns resolved partitions in librdkafka immediately; the others follow as the brokers answer.
Status KafkaSource::assign(const Assignment& assignment) {
  if (auto fits = partitions_.check(assignment); !fits) return fits;
  resume_client();  // while librdkafka still has the paused partitions
  partitions_.keep_only(assignment);
  for (const auto& [id, cursor] : assignment.cursors) {
    Partition& partition = partitions_.gain(id, cursor ? std::optional(cursor->offset) : std::nullopt);
    if (!cursor) continue;
    const bool was_placed = partition.is_placed();
    partition.move_to(cursor->offset);
    if (!was_placed) same_log_.recall(partition);
    if (was_placed && partition.is_unresolved()) SameLog::doubt(partition);
  }
  partitions_.show();
  return opened_ ? start_reading() : ok();
}

}  // namespace

Result<std::unique_ptr<RecordSource>> open_kafka_source(const KafkaSourceConfig& config, const Clock& clock,
                                                        MetricsSink& metrics) {
  auto source = std::make_unique<KafkaSource>(config, clock, metrics);
  if (auto status = source->connect(config.properties); !status) return status.error();
  return std::unique_ptr<RecordSource>(std::move(source));
}

}  // namespace rivulet::stream
