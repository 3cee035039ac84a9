#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "stream/kafka/committer.h"
#include "stream/kafka/notices.h"
#include "stream/kafka/partitions.h"
#include "stream/kafka/refill.h"
#include "stream/kafka/same_log.h"
#include "stream/kafka/settling.h"
#include "stream/open.h"

namespace rivulet::stream {
namespace {

using namespace kafka;

/// What a careful consumer sets. Offsets belong to the agreed state, so nothing is committed or reset by
/// itself.
constexpr Default reader_defaults[] = {
    {"auto.offset.reset", "error"},          {"enable.auto.offset.store", "false"},
    {"enable.partition.eof", "false"},       {"check.crcs", "true"},
    {"socket.keepalive.enable", "true"},     {"isolation.level", "read_committed"},
    {"queued.max.messages.kbytes", "16384"}, {"statistics.interval.ms", "2000"}};

/// A reader that commits nothing needs no group, but librdkafka's assign() wants one. It is never joined.
std::string group_of(const KafkaSourceConfig& config) {
  return config.group_id.empty() ? "rivulet.reader" : config.group_id;
}

class KafkaSource final : public RecordSource {
 public:
  KafkaSource(const KafkaSourceConfig& config, const Clock& clock, MetricsSink& metrics);
  Status connect(const Properties& properties);

  Result<std::span<const Record>> poll(std::size_t max_records, Duration max_wait) override;
  void hold() override;
  Status commit(std::span<const NextOffset> positions) override;
  Status seek(std::span<const NextOffset> positions) override;
  [[nodiscard]] std::span<const PartitionState> partitions() const noexcept override {
    return partitions_.states();
  }
  [[nodiscard]] std::string_view unreachable() const noexcept override { return notices_.unreachable(); }
  std::vector<Gap> take_gaps() override { return partitions_.take_gaps(); }
  [[nodiscard]] bool exhausted() const noexcept override { return false; }
  [[nodiscard]] TimePoint next_due() const noexcept override {
    return same_log_.holds() ? TimePoint::min() : TimePoint::max();
  }

 private:
  Status settle(TimePoint now);
  Status assign();
  void hold_back(TimePoint now);
  void let_go();
  void resume_client();
  void fetch(std::size_t max_records, Duration max_wait);
  void accept(std::size_t slot, Message message);
  void note_error(const rd_kafka_message_t& message);
  void check_logs(Duration wait);
  void refresh(TimePoint now);

  // constant
  KafkaSourceConfig config_;
  const Clock& clock_;
  // ingest thread
  Notices notices_;
  std::unique_ptr<Client> client_;
  std::optional<Refill> refill_;  ///< of the client
  Committer committer_;
  SameLog same_log_;
  bool opened_ = false;  ///< something is assigned
  bool assign_due_ = true;
  Partitions partitions_;
  Settling settling_;
  std::vector<const rd_kafka_message_s*> newest_;  ///< of the last fetch, by slot
  std::vector<Message> held_;                      ///< what records_ points into
  std::vector<Record> records_;
  Message carried_;                      ///< came while held back; first of the next poll
  std::optional<TimePoint> held_since_;  ///< no room since
  bool client_paused_ = false;
  std::map<std::size_t, std::int64_t> commits_;  ///< slot -> last offset to commit
  TimePoint next_refresh_{};
};

KafkaSource::KafkaSource(const KafkaSourceConfig& config, const Clock& clock, MetricsSink& metrics)
    : config_(config),
      clock_(clock),
      notices_(brokers_of(config.properties), metrics),
      committer_(config.properties, config.group_id, config.client_id, notices_),
      same_log_({.properties = config.properties,
                 .group_id = group_of(config),
                 .partitions = config.partitions,
                 .file = config.anchor_file,
                 .every = config.anchor_every,
                 .hold_at_most = config.anchor_hold},
                clock),
      partitions_(config_, metrics),
      settling_(config_, clock, partitions_, notices_),
      newest_(config.partitions.size()) {
  for (std::size_t slot = 0; slot < partitions_.size(); ++slot)
    if (config_.resume.contains(partitions_.name(slot).id)) same_log_.recall(slot);
}

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
  held_.clear();
  const TimePoint now = clock_.now();
  if (auto status = settle(now); !status) return status.error();
  if (!opened_) {
    client_->serve_callbacks(Duration(0));
    settling_.wait(max_wait);
    return std::span<const Record>();
  }
  if (max_records == 0)
    hold_back(now);
  else
    fetch(max_records, max_wait);
  check_logs(max_wait);
  refresh(now);
  if (!records_.empty()) return std::span<const Record>(records_);
  if (!notices_.hopeless().empty()) return Error{ErrorCode::unavailable, notices_.hopeless()};
  if (auto notice = notices_.take(now)) return *notice;
  return std::span<const Record>();
}

void KafkaSource::hold() {
  const TimePoint now = clock_.now();
  hold_back(now);
  check_logs(Duration(0));
  refresh(now);
}

/// What has been settled is read, whatever the others wait for.
Status KafkaSource::settle(TimePoint now) {
  if (const auto silent = notices_.take_silent()) partitions_.doubt(*silent);
  const auto changed = settling_.serve(client_->handle(), now);
  if (!changed) return changed.error();
  assign_due_ = assign_due_ || changed.value();
  if (!assign_due_ || !settling_.any_settled()) return ok();
  if (!opened_ && is_embedded(client_->handle())) {
    if (settling_.uses_client()) return ok();
    same_log_.disable();
    if (auto status = connect(for_embedded(config_.properties)); !status) return status;
  }
  opened_ = true;
  const auto assigned = assign();
  assign_due_ = !assigned;  // else with the next poll
  if (!assigned) notices_.say(assigned.error().message);
  return ok();
}

/// (Re)starts every partition that is not stopped at its next offset. What librdkafka has queued of older
/// assignments is dropped by it.
Status KafkaSource::assign() {
  resume_client();  // a pause outlives the assignment it was made in
  PartitionList list;
  for (std::size_t slot = 0; slot < partitions_.size(); ++slot)
    if (partitions_.is_read(slot)) {
      const auto& [topic, id] = partitions_.name(slot);
      list.add(topic, id.partition, partitions_.state(slot).next_offset);
    }
  if (auto status = kafka::assign(client_->handle(), list); !status) return status;
  carried_.reset();
  held_since_.reset();
  partitions_.set_paused(false);
  return ok();
}

/// A pause makes librdkafka throw away what it has fetched and fetch it again later, so a buffer that is full
/// for a moment should not cost one. Meanwhile one record at most is taken, and kept.
void KafkaSource::hold_back(TimePoint now) {
  constexpr Duration a_moment = std::chrono::milliseconds(50);
  if (!held_since_) held_since_ = now;
  partitions_.set_paused(true);
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
  partitions_.set_paused(false);
  resume_client();
}

void KafkaSource::resume_client() {
  if (!client_paused_) return;
  PartitionList list;
  for (const auto& partition : config_.partitions) list.add(partition.topic, partition.id.partition, 0);
  client_paused_ = rd_kafka_resume_partitions(client_->handle(), list.get()) != RD_KAFKA_RESP_ERR_NO_ERROR;
}

/// One message at a time: librdkafka's batch call is not safe together with pause and seek before 2.13.
void KafkaSource::fetch(std::size_t max_records, Duration max_wait) {
  if (held_since_) let_go();
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
    const std::size_t slot = partitions_.slot_of(*message);
    // A record below the position has been handed out already; after a reconnect a broker may send a batch
    // again.
    if (slot == partitions_.size() || message->offset < partitions_.state(slot).next_offset) continue;
    if (!same_log_.trusts(slot)) {
      carried_ = std::move(message);
      break;
    }
    accept(slot, std::move(message));
  }
  refill_->look(partitions_, clock_.now());
  for (std::size_t slot = 0; slot < newest_.size(); ++slot)
    if (const auto* newest = std::exchange(newest_[slot], nullptr)) same_log_.passed(slot, *newest);
}

void KafkaSource::accept(std::size_t slot, Message message) {
  partitions_.passed(slot, *message);
  newest_[slot] = message.get();
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  records_.push_back(
      {.partition = partitions_.name(slot).id,
       .offset = message->offset,
       .timestamp_ms = std::max<std::int64_t>(rd_kafka_message_timestamp(message.get(), &type), 0),
       .value = {static_cast<const std::byte*>(message->payload), message->len},
       .tombstone = message->payload == nullptr});
  held_.push_back(std::move(message));
}

void KafkaSource::note_error(const rd_kafka_message_t& message) {
  const std::size_t slot = message.rkt != nullptr ? partitions_.slot_of(message) : partitions_.size();
  const bool out_of_range = message.err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET ||
                            message.err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE;
  if (out_of_range && slot < partitions_.size()) {
    partitions_.unsettle(slot);  // librdkafka has stopped it by itself
    same_log_.doubt(slot);
    return;
  }
  const std::string words =
      message.payload != nullptr ? rd_kafka_message_errstr(&message) : words_of(message.err);
  const std::string where = slot < partitions_.size() ? name_of(partitions_.name(slot)) + ": " : "";
  notices_.record_error(message.err, where + words);
}

void KafkaSource::check_logs(Duration wait) {
  const auto other = same_log_.serve(wait);
  if (auto complaint = same_log_.take_complaint()) notices_.say(complaint->message);
  if (!other) return;
  const auto& partition = partitions_.name(*other);
  const auto& state = partitions_.state(*other);
  const auto marks = query_watermarks(client_->handle(), partition.topic, partition.id.partition,
                                      std::chrono::milliseconds(250));
  partitions_.stop_other_log(*other, same_log_.anchor_offset(*other),
                             marks ? marks.value() : Watermarks{state.low_watermark, state.high_watermark});
  if (auto status = assign(); !status) notices_.say(status.error().message);
}

void KafkaSource::refresh(TimePoint now) {
  if (now < next_refresh_) return;
  next_refresh_ = now + std::chrono::milliseconds(100);
  client_->serve_callbacks(Duration(0));
  committer_.serve(now);
  for (const auto& [topic, partition, offset] : committer_.take_accepted())
    partitions_.committed(topic, partition, offset);
  if (partitions_.refresh(client_->handle())) notices_.answered();
  partitions_.hold(notices_.held());
}

Status KafkaSource::commit(std::span<const NextOffset> positions) {
  if (positions.empty()) return ok();
  if (!opened_)
    return Error{ErrorCode::source_lost, "offsets cannot be committed before the first connection"};
  const auto slots = partitions_.slots_of(positions);
  if (!slots) return slots.error();
  for (std::size_t i = 0; i < positions.size(); ++i) commits_[slots.value()[i]] = positions[i].offset;
  auto list = std::make_unique<PartitionList>();
  for (const auto& [slot, offset] : commits_)
    list->add(config_.partitions[slot].topic, config_.partitions[slot].id.partition, offset);
  return committer_.commit(std::move(list));
}

Status KafkaSource::seek(std::span<const NextOffset> positions) {
  const auto slots = partitions_.slots_of(positions);
  if (!slots) return slots.error();
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::size_t slot = slots.value()[i];
    if (partitions_.state(slot).next_offset < 0) {
      settling_.set_start(slot, positions[i].offset);
      same_log_.recall(slot);
      continue;
    }
    partitions_.move_to(slot, positions[i].offset);
    if (partitions_.is_unsettled(slot)) same_log_.doubt(slot);
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
