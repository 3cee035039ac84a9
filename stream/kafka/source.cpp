#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "stream/kafka/committer.h"
#include "stream/kafka/notices.h"
#include "stream/kafka/opening.h"
#include "stream/open.h"

namespace rivulet::stream {
namespace {

using namespace kafka;

/// What a careful consumer sets. Offsets belong to the agreed state, so nothing is committed or reset by
/// itself.
constexpr Default reader_defaults[] = {{"auto.offset.reset", "error"},
                                       {"enable.auto.commit", "false"},
                                       {"enable.auto.offset.store", "false"},
                                       {"enable.partition.eof", "false"},
                                       {"check.crcs", "true"},
                                       {"socket.keepalive.enable", "true"},
                                       {"reconnect.backoff.max.ms", "2000"},
                                       {"allow.auto.create.topics", "false"},
                                       {"isolation.level", "read_committed"},
                                       {"queued.max.messages.kbytes", "16384"}};

class KafkaSource final : public RecordSource {
 public:
  KafkaSource(const KafkaSourceConfig& config, const Clock& clock, MetricsSink& metrics);
  Status connect(const Properties& properties);

  Result<std::span<const Record>> poll(std::size_t max_records, Duration max_wait) override;
  void hold() override;
  Status commit(std::span<const NextOffset> positions) override;
  Status seek(std::span<const NextOffset> positions) override;
  [[nodiscard]] std::span<const PartitionState> partitions() const noexcept override { return states_; }
  [[nodiscard]] bool exhausted() const noexcept override { return false; }

 private:
  Result<bool> open(Duration max_wait);
  Status assign();
  void hold_back(TimePoint now);
  void let_go();
  void fetch(std::size_t max_records, Duration max_wait);
  void accept(Message message);
  void note_error(const rd_kafka_message_t& message);
  void refresh(TimePoint now);
  void set_paused(bool paused);
  Result<std::vector<std::size_t>> slots_of(std::span<const NextOffset> positions) const;
  [[nodiscard]] std::size_t slot_of(const rd_kafka_message_t& message) const noexcept;

  // constant
  KafkaSourceConfig config_;
  const Clock& clock_;
  std::vector<Counter*> records_total_;  ///< per slot
  std::vector<Counter*> bytes_total_;
  std::vector<Gauge*> lag_;
  Gauge& paused_gauge_;
  // ingest thread
  Notices notices_;
  std::unique_ptr<Client> client_;
  Committer committer_;
  Opening opening_;
  bool opened_ = false;
  Duration patience_ = std::chrono::milliseconds(250);
  TimePoint next_attempt_{};
  std::vector<PartitionState> states_;  ///< slot i = config_.partitions[i]
  std::vector<Message> held_;           ///< what records_ points into
  std::vector<Record> records_;
  Message carried_;                      ///< came while held back; first of the next poll
  std::optional<TimePoint> held_since_;  ///< no room since
  bool client_paused_ = false;
  std::map<std::size_t, std::int64_t> commits_;  ///< slot -> last offset to commit
  std::optional<Error> fault_;                   ///< the source cannot go on until a seek
  TimePoint next_refresh_{};
};

KafkaSource::KafkaSource(const KafkaSourceConfig& config, const Clock& clock, MetricsSink& metrics)
    : config_(config),
      clock_(clock),
      paused_gauge_(metrics.gauge("kafka_paused_partitions")),
      notices_(brokers_of(config.properties), metrics),
      committer_(config.properties, config.group_id, config.client_id, notices_),
      opening_(config_, clock) {
  std::map<std::string, double> assigned;
  for (const auto& partition : config_.partitions) {
    states_.push_back({.id = partition.id});
    records_total_.push_back(&metrics.counter("kafka_records_consumed_total", {{"topic", partition.topic}}));
    bytes_total_.push_back(&metrics.counter("kafka_consumed_bytes_total", {{"topic", partition.topic}}));
    const auto number = std::to_string(partition.id.partition);
    lag_.push_back(
        &metrics.gauge("kafka_processed_lag_records", {{"topic", partition.topic}, {"partition", number}}));
    metrics.gauge("kafka_assigned_partitions", {{"topic", partition.topic}}).set(++assigned[partition.topic]);
  }
}

Status KafkaSource::connect(const Properties& properties) {
  std::vector<Default> defaults(std::begin(reader_defaults), std::end(reader_defaults));
  // A reader that commits nothing needs no group, but librdkafka's assign() wants one. It is never joined.
  const std::string group = config_.group_id.empty() ? "rivulet.reader" : config_.group_id;
  defaults.emplace_back("group.id", group);
  if (!config_.client_id.empty()) defaults.emplace_back("client.id", config_.client_id);
  client_.reset();
  auto client = Client::open(ClientKind::consumer, properties, defaults, notices_);
  if (!client) return client.error();
  client_ = std::move(client).value();
  return ok();
}

Result<std::span<const Record>> KafkaSource::poll(std::size_t max_records, Duration max_wait) {
  records_.clear();
  held_.clear();
  if (!opened_) {
    const auto done = open(max_wait);
    if (!done) return done.error();
    if (!done.value()) return std::span<const Record>();
  }
  if (fault_) return *fault_;
  const TimePoint now = clock_.now();
  if (max_records == 0)
    hold_back(now);
  else
    fetch(max_records, max_wait);
  refresh(now);
  if (!records_.empty()) return std::span<const Record>(records_);
  if (fault_) return *fault_;
  if (!notices_.hopeless().empty()) return Error{ErrorCode::unavailable, notices_.hopeless()};
  if (auto notice = notices_.take(now)) return *notice;
  return std::span<const Record>();
}

void KafkaSource::hold() {
  const TimePoint now = clock_.now();
  hold_back(now);
  refresh(now);
}

/// Attempts last a quarter of a second at first and longer later: a far broker must be able to answer in one.
Result<bool> KafkaSource::open(Duration max_wait) {
  const TimePoint now = clock_.now();
  const Duration rest = std::clamp<Duration>(next_attempt_ - now, Duration(0), max_wait);
  client_->serve_callbacks(rest);
  if (now + rest < next_attempt_) return false;
  const Duration patience = std::max(std::min<Duration>(patience_, config_.open_deadline), max_wait);
  auto done = opening_.attempt(client_->handle(), patience, notices_.last_words());
  patience_ = std::min<Duration>(patience_ * 2, std::chrono::seconds(2));
  next_attempt_ = clock_.now() + std::chrono::milliseconds(50);
  if (!done || !done.value()) return done;
  if (is_embedded(client_->handle()))
    if (auto status = connect(for_embedded(config_.properties)); !status) return status.error();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    states_[i].next_offset = opening_.offsets()[i];
    states_[i].low_watermark = opening_.watermarks()[i].low;
    states_[i].high_watermark = opening_.watermarks()[i].high;
  }
  if (auto status = assign(); !status) return status.error();
  opened_ = true;
  return true;
}

/// (Re)starts every partition at its next offset. What librdkafka has queued of older assignments is dropped
/// by it, but a pause outlives them.
Status KafkaSource::assign() {
  let_go();
  PartitionList list;
  for (std::size_t i = 0; i < states_.size(); ++i)
    list.add(config_.partitions[i].topic, states_[i].id.partition, states_[i].next_offset);
  const auto code = rd_kafka_assign(client_->handle(), list.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return Error{ErrorCode::source_lost,
                 fmt::format("the partitions cannot be assigned: {}", words_of(code))};
  carried_.reset();
  return ok();
}

/// A pause makes librdkafka throw away what it has fetched and fetch it again later, so a buffer that is full
/// for a moment should not cost one. Meanwhile one record at most is taken, and kept.
void KafkaSource::hold_back(TimePoint now) {
  constexpr Duration a_moment = std::chrono::milliseconds(50);
  if (!held_since_) held_since_ = now;
  set_paused(true);
  if (!client_paused_ && now - *held_since_ >= a_moment) {
    PartitionList list;
    for (const auto& partition : config_.partitions) list.add(partition.topic, partition.id.partition, 0);
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

void KafkaSource::let_go() {
  held_since_.reset();
  set_paused(false);
  if (!client_paused_) return;
  PartitionList list;
  for (const auto& partition : config_.partitions) list.add(partition.topic, partition.id.partition, 0);
  client_paused_ = rd_kafka_resume_partitions(client_->handle(), list.get()) != RD_KAFKA_RESP_ERR_NO_ERROR;
}

/// One message at a time: librdkafka's batch call is not safe together with pause and seek before 2.13.
void KafkaSource::fetch(std::size_t max_records, Duration max_wait) {
  if (held_since_) let_go();
  int wait_ms = to_ms(max_wait);
  while (records_.size() < max_records && !fault_) {
    Message message =
        carried_ ? std::move(carried_) : Message(rd_kafka_consumer_poll(client_->handle(), wait_ms));
    if (!message) return;
    wait_ms = 0;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
      note_error(*message);
    else
      accept(std::move(message));
  }
}

void KafkaSource::accept(Message message) {
  const std::size_t slot = slot_of(*message);
  // A record below the position has been handed out already; after a reconnect a broker may send a batch
  // again.
  if (slot == states_.size() || message->offset < states_[slot].next_offset) return;
  states_[slot].next_offset = message->offset + 1;
  records_total_[slot]->add(1);
  bytes_total_[slot]->add(static_cast<double>(message->len));
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  records_.push_back(
      {.partition = states_[slot].id,
       .offset = message->offset,
       .timestamp_ms = std::max<std::int64_t>(rd_kafka_message_timestamp(message.get(), &type), 0),
       .value = {static_cast<const std::byte*>(message->payload), message->len},
       .tombstone = message->payload == nullptr});
  held_.push_back(std::move(message));
}

void KafkaSource::note_error(const rd_kafka_message_t& message) {
  const std::string words =
      message.payload != nullptr ? rd_kafka_message_errstr(&message) : words_of(message.err);
  const std::size_t slot = message.rkt != nullptr ? slot_of(message) : states_.size();
  const std::string where = slot < states_.size() ? kafka::name_of(config_.partitions[slot]) + ": " : "";
  notices_.record_error(message.err, where + words);
  const bool out_of_range = message.err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET ||
                            message.err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE;
  if (!out_of_range || slot == states_.size()) return;
  fault_ = Error{ErrorCode::bad_record,
                 fmt::format("{}offset {} is not there: {}", where, states_[slot].next_offset, words)};
}

void KafkaSource::refresh(TimePoint now) {
  if (now < next_refresh_) return;
  next_refresh_ = now + std::chrono::milliseconds(100);
  committer_.serve(now);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    auto& state = states_[i];
    const auto marks = known_watermarks(client_->handle(), config_.partitions[i].topic, state.id.partition);
    state.low_watermark = std::max(state.low_watermark, marks.low);
    state.high_watermark = std::max({state.high_watermark, marks.high, state.next_offset});
    lag_[i]->set(static_cast<double>(state.high_watermark - state.next_offset));
  }
}

void KafkaSource::set_paused(bool paused) {
  for (auto& state : states_) state.paused = paused;
  paused_gauge_.set(paused ? static_cast<double>(states_.size()) : 0);
}

Result<std::vector<std::size_t>> KafkaSource::slots_of(std::span<const NextOffset> positions) const {
  std::vector<std::size_t> slots;
  for (const auto& position : positions) {
    const auto found = std::find_if(states_.begin(), states_.end(),
                                    [&](const auto& state) { return state.id == position.partition; });
    if (found == states_.end())
      return Error{ErrorCode::unavailable,
                   fmt::format("partition {}:{} is not one of this source", position.partition.topic,
                               position.partition.partition)};
    slots.push_back(static_cast<std::size_t>(found - states_.begin()));
  }
  return slots;
}

std::size_t KafkaSource::slot_of(const rd_kafka_message_t& message) const noexcept {
  const char* topic = rd_kafka_topic_name(message.rkt);
  std::size_t slot = 0;
  while (slot < states_.size() &&
         (states_[slot].id.partition != message.partition || config_.partitions[slot].topic != topic))
    ++slot;
  return slot;
}

Status KafkaSource::commit(std::span<const NextOffset> positions) {
  if (positions.empty()) return ok();
  if (!opened_)
    return Error{ErrorCode::source_lost, "offsets cannot be committed before the first connection"};
  const auto slots = slots_of(positions);
  if (!slots) return slots.error();
  for (std::size_t i = 0; i < positions.size(); ++i) commits_[slots.value()[i]] = positions[i].offset;
  auto list = std::make_unique<PartitionList>();
  for (const auto& [slot, offset] : commits_)
    list->add(config_.partitions[slot].topic, config_.partitions[slot].id.partition, offset);
  return committer_.commit(std::move(list));
}

Status KafkaSource::seek(std::span<const NextOffset> positions) {
  const auto slots = slots_of(positions);
  if (!slots) return slots.error();
  fault_.reset();
  for (std::size_t i = 0; i < positions.size(); ++i) {
    states_[slots.value()[i]].next_offset = positions[i].offset;
    if (!opened_) opening_.set_start(positions[i].partition, positions[i].offset);
  }
  return opened_ ? assign() : ok();
}

}  // namespace

Result<std::unique_ptr<RecordSource>> open_kafka_source(const KafkaSourceConfig& config, const Clock& clock,
                                                        MetricsSink& metrics) {
  if (config.partitions.empty()) return Error{ErrorCode::invalid_config, "source.partitions is empty"};
  auto source = std::make_unique<KafkaSource>(config, clock, metrics);
  if (auto status = source->connect(config.properties); !status) return status.error();
  return std::unique_ptr<RecordSource>(std::move(source));
}

}  // namespace rivulet::stream
