#include "tests/support/kafka_client.h"

#include <librdkafka/rdkafka.h>

#include <array>
#include <memory>

#include "core/clock.h"
#include "tests/support/wait.h"

namespace rivulet::testing {
namespace {

constexpr int call_timeout_ms = 10'000;

template <auto Destroy>
struct Deleter {
  template <class T>
  void operator()(T* object) const {
    Destroy(object);
  }
};
template <class T, auto Destroy>
using Owned = std::unique_ptr<T, Deleter<Destroy>>;
using Client = Owned<rd_kafka_t, rd_kafka_destroy>;
using Offsets = Owned<rd_kafka_topic_partition_list_t, rd_kafka_topic_partition_list_destroy>;

Error failure(rd_kafka_resp_err_t code, const std::string& what) {
  return Error{ErrorCode::io, what + ": " + rd_kafka_err2str(code)};
}

/// Result of the records of one produce() call: the first failure in the delivery reports.
struct Deliveries {
  rd_kafka_resp_err_t first_error = RD_KAFKA_RESP_ERR_NO_ERROR;
};

void on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
  auto* deliveries = static_cast<Deliveries*>(opaque);
  if (deliveries != nullptr && deliveries->first_error == RD_KAFKA_RESP_ERR_NO_ERROR) {
    deliveries->first_error = message->err;
  }
}

Result<Client> open_client(rd_kafka_type_t type, const std::map<std::string, std::string>& properties,
                           Deliveries* deliveries = nullptr) {
  std::array<char, 512> text{};
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set_opaque(conf, deliveries);
  if (deliveries != nullptr) rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  for (const auto& [name, value] : properties) {
    if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), text.data(), text.size()) != RD_KAFKA_CONF_OK) {
      rd_kafka_conf_destroy(conf);
      return Error{ErrorCode::usage, text.data()};
    }
  }
  rd_kafka_t* client = rd_kafka_new(type, conf, text.data(), text.size());
  if (client != nullptr) return Client(client);
  rd_kafka_conf_destroy(conf);
  return Error{ErrorCode::io, text.data()};
}

Result<Client> open_producer(const std::string& brokers, Deliveries* deliveries = nullptr) {
  return open_client(
      RD_KAFKA_PRODUCER,
      {{"bootstrap.servers", brokers},
       {"log_level", "0"},
       {"enable.idempotence", "true"},  // otherwise a retried request is written after later ones
       {"linger.ms", "1"},
       {"message.max.bytes", "10000000"},
       {"topic.metadata.propagation.max.ms", "1000"},
       {"message.timeout.ms", "15000"}},
      deliveries);
}

Result<Client> open_consumer(const std::string& brokers, const std::string& group) {
  return open_client(RD_KAFKA_CONSUMER, {{"bootstrap.servers", brokers},
                                         {"log_level", "0"},
                                         {"group.id", group},
                                         {"enable.auto.commit", "false"},
                                         {"auto.offset.reset", "error"},
                                         {"fetch.wait.max.ms", "50"}});
}

/// The answer of a CreateTopics call for its one topic.
Status topic_result(rd_kafka_event_t* event, const std::string& topic) {
  if (event == nullptr) return Error{ErrorCode::unavailable, "no answer to create " + topic};
  const Owned<rd_kafka_event_t, rd_kafka_event_destroy> owned(event);
  if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return failure(rd_kafka_event_error(event), "cannot create " + topic);
  }
  std::size_t count = 0;
  const rd_kafka_topic_result_t** results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
  if (count == 1 && rd_kafka_topic_result_error(results[0]) == RD_KAFKA_RESP_ERR_NO_ERROR) return ok();
  const char* text = count == 1 ? rd_kafka_topic_result_error_string(results[0]) : nullptr;
  return Error{ErrorCode::io, "cannot create " + topic + ": " + (text == nullptr ? "no reason given" : text)};
}

bool has_leaders(rd_kafka_t* client, const std::string& topic, int partitions) {
  const Owned<rd_kafka_topic_t, rd_kafka_topic_destroy> handle(
      rd_kafka_topic_new(client, topic.c_str(), nullptr));
  const rd_kafka_metadata_t* metadata = nullptr;
  if (rd_kafka_metadata(client, 0, handle.get(), &metadata, 2000) != RD_KAFKA_RESP_ERR_NO_ERROR) return false;
  const Owned<const rd_kafka_metadata_t, rd_kafka_metadata_destroy> owned(metadata);
  if (metadata->topic_cnt != 1 || metadata->topics[0].partition_cnt != partitions) return false;
  for (int i = 0; i < partitions; ++i) {
    if (metadata->topics[0].partitions[i].leader < 0) return false;
  }
  return true;
}

bool is_listed(rd_kafka_t* client, const std::string& topic) {
  const rd_kafka_metadata_t* metadata = nullptr;
  if (rd_kafka_metadata(client, 1, nullptr, &metadata, 2000) != RD_KAFKA_RESP_ERR_NO_ERROR) return true;
  const Owned<const rd_kafka_metadata_t, rd_kafka_metadata_destroy> owned(metadata);
  for (int i = 0; i < metadata->topic_cnt; ++i)
    if (topic == metadata->topics[i].topic) return true;
  return false;
}

Status admin_answer(rd_kafka_event_t* event, const std::string& what) {
  if (event == nullptr) return Error{ErrorCode::unavailable, what + ": no answer"};
  if (rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR_NO_ERROR) return ok();
  return failure(rd_kafka_event_error(event), what);
}

rd_kafka_resp_err_t enqueue(rd_kafka_t* client, const std::string& topic, const TestRecord& record) {
  rd_kafka_headers_t* headers = rd_kafka_headers_new(record.headers.size());
  for (const auto& [name, value] : record.headers)
    rd_kafka_header_add(headers, name.c_str(), -1, value.data(), static_cast<ssize_t>(value.size()));
  const auto code =
      rd_kafka_producev(client, RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(record.partition),
                        RD_KAFKA_V_KEY(record.key.empty() ? nullptr : record.key.data(), record.key.size()),
                        RD_KAFKA_V_VALUE(record.tombstone ? nullptr : const_cast<char*>(record.value.data()),
                                         record.value.size()),
                        RD_KAFKA_V_TIMESTAMP(record.timestamp_ms), RD_KAFKA_V_HEADERS(headers),
                        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    rd_kafka_headers_destroy(headers);  // otherwise the client owns them
  return code;
}

TestRecord to_record(const rd_kafka_message_t& message) {
  TestRecord record;
  record.value.assign(static_cast<const char*>(message.payload), message.len);
  record.key.assign(static_cast<const char*>(message.key), message.key_len);
  record.partition = message.partition;
  record.timestamp_ms = rd_kafka_message_timestamp(&message, nullptr);
  record.offset = message.offset;
  return record;
}

Offsets one_partition(const std::string& topic, int partition, std::int64_t offset) {
  Offsets list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = offset;
  return list;
}

}  // namespace

Status wait_for_broker(const std::string& brokers, Duration deadline) {
  Result<Client> client = open_producer(brokers);
  if (!client) return client.error();
  const bool answered = wait_until(
      [&] {
        const rd_kafka_metadata_t* metadata = nullptr;
        const bool good = rd_kafka_metadata(client.value().get(), 0, nullptr, &metadata, 1000) ==
                          RD_KAFKA_RESP_ERR_NO_ERROR;
        const Owned<const rd_kafka_metadata_t, rd_kafka_metadata_destroy> owned(metadata);
        return good && metadata->broker_cnt > 0;
      },
      deadline);
  if (answered) return ok();
  return Error{ErrorCode::unavailable, "the broker at " + brokers + " does not answer"};
}

Status create_topic(const std::string& brokers, const std::string& topic, int partitions,
                    const std::map<std::string, std::string>& configuration) {
  Result<Client> client = open_producer(brokers);
  if (!client) return client.error();
  std::array<char, 512> text{};
  const Owned<rd_kafka_NewTopic_t, rd_kafka_NewTopic_destroy> wanted(
      rd_kafka_NewTopic_new(topic.c_str(), partitions, 1, text.data(), text.size()));
  if (wanted == nullptr) return Error{ErrorCode::usage, text.data()};
  for (const auto& [name, value] : configuration) {
    rd_kafka_NewTopic_set_config(wanted.get(), name.c_str(), value.c_str());
  }
  rd_kafka_t* handle = client.value().get();
  const Owned<rd_kafka_queue_t, rd_kafka_queue_destroy> queue(rd_kafka_queue_new(handle));
  rd_kafka_NewTopic_t* list = wanted.get();
  rd_kafka_CreateTopics(handle, &list, 1, nullptr, queue.get());
  const Status created = topic_result(rd_kafka_queue_poll(queue.get(), call_timeout_ms), topic);
  if (!created) return created;
  const bool led =
      wait_until([&] { return has_leaders(handle, topic, partitions); }, std::chrono::seconds(10));
  if (led) return ok();
  return Error{ErrorCode::unavailable, topic + " has no leaders"};
}

Status delete_topic(const std::string& brokers, const std::string& topic) {
  Result<Client> client = open_producer(brokers);
  if (!client) return client.error();
  rd_kafka_t* handle = client.value().get();
  const Owned<rd_kafka_queue_t, rd_kafka_queue_destroy> queue(rd_kafka_queue_new(handle));
  const Owned<rd_kafka_DeleteTopic_t, rd_kafka_DeleteTopic_destroy> doomed(
      rd_kafka_DeleteTopic_new(topic.c_str()));
  rd_kafka_DeleteTopic_t* list = doomed.get();
  rd_kafka_DeleteTopics(handle, &list, 1, nullptr, queue.get());
  const Owned<rd_kafka_event_t, rd_kafka_event_destroy> event(
      rd_kafka_queue_poll(queue.get(), call_timeout_ms));
  if (auto answered = admin_answer(event.get(), "cannot delete " + topic); !answered) return answered;
  std::size_t count = 0;
  const rd_kafka_topic_result_t* const* results =
      rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event.get()), &count);
  if (count != 1 || rd_kafka_topic_result_error(results[0]) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return Error{ErrorCode::io, "cannot delete " + topic};
  const bool gone = wait_until([&] { return !is_listed(handle, topic); }, std::chrono::seconds(10));
  if (gone) return ok();
  return Error{ErrorCode::unavailable, topic + " still exists"};
}

Status delete_records(const std::string& brokers, const std::string& topic, int partition,
                      std::int64_t before) {
  Result<Client> client = open_producer(brokers);
  if (!client) return client.error();
  rd_kafka_t* handle = client.value().get();
  const Owned<rd_kafka_queue_t, rd_kafka_queue_destroy> queue(rd_kafka_queue_new(handle));
  const Offsets offsets = one_partition(topic, partition, before);
  const Owned<rd_kafka_DeleteRecords_t, rd_kafka_DeleteRecords_destroy> doomed(
      rd_kafka_DeleteRecords_new(offsets.get()));
  rd_kafka_DeleteRecords_t* list = doomed.get();
  rd_kafka_DeleteRecords(handle, &list, 1, nullptr, queue.get());
  const Owned<rd_kafka_event_t, rd_kafka_event_destroy> event(
      rd_kafka_queue_poll(queue.get(), call_timeout_ms));
  const std::string what = "cannot delete records of " + topic;
  if (auto answered = admin_answer(event.get(), what); !answered) return answered;
  const rd_kafka_topic_partition_list_t* left =
      rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event.get()));
  return left->elems[0].err == RD_KAFKA_RESP_ERR_NO_ERROR ? ok() : Status(failure(left->elems[0].err, what));
}

Status produce(const std::string& brokers, const std::string& topic, const std::vector<TestRecord>& records) {
  Deliveries deliveries;
  Result<Client> client = open_producer(brokers, &deliveries);
  if (!client) return client.error();
  rd_kafka_t* handle = client.value().get();
  for (const TestRecord& record : records) {
    rd_kafka_resp_err_t code = enqueue(handle, topic, record);
    while (code == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
      rd_kafka_poll(handle, 10);
      code = enqueue(handle, topic, record);
    }
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return failure(code, "cannot produce to " + topic);
  }
  if (rd_kafka_flush(handle, 20'000) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return Error{ErrorCode::unavailable, "records for " + topic + " were not acknowledged"};
  }
  if (deliveries.first_error == RD_KAFKA_RESP_ERR_NO_ERROR) return ok();
  return failure(deliveries.first_error, "a record for " + topic + " was not written");
}

namespace {

Status done(rd_kafka_error_t* error) {
  if (error == nullptr) return ok();
  const Owned<rd_kafka_error_t, rd_kafka_error_destroy> owned(error);
  return Error{ErrorCode::io, rd_kafka_error_string(error)};
}

/// Opens a transaction whose records the broker has.
Status begin_with(rd_kafka_t* handle, const std::string& topic, const std::vector<TestRecord>& records) {
  if (auto ready = done(rd_kafka_init_transactions(handle, 3 * call_timeout_ms)); !ready) return ready;
  if (auto begun = done(rd_kafka_begin_transaction(handle)); !begun) return begun;
  for (const TestRecord& record : records) {
    const auto code = enqueue(handle, topic, record);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return failure(code, "cannot produce to " + topic);
  }
  if (rd_kafka_flush(handle, 2 * call_timeout_ms) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return Error{ErrorCode::unavailable, "records for " + topic + " were not acknowledged"};
  return ok();
}

Result<Client> open_transactional(const std::string& brokers, const std::string& topic) {
  return open_client(
      RD_KAFKA_PRODUCER,
      {{"bootstrap.servers", brokers}, {"log_level", "0"}, {"transactional.id", "test-" + topic}});
}

struct Transaction final : OpenTransaction {
  explicit Transaction(Client opened) : client(std::move(opened)) {}
  Status commit() override { return done(rd_kafka_commit_transaction(client.get(), 2 * call_timeout_ms)); }
  Client client;
};

}  // namespace

Result<std::unique_ptr<OpenTransaction>> OpenTransaction::begin(const std::string& brokers,
                                                                const std::string& topic,
                                                                const std::vector<TestRecord>& records) {
  Result<Client> client = open_transactional(brokers, topic);
  if (!client) return client.error();
  if (auto begun = begin_with(client.value().get(), topic, records); !begun) return begun.error();
  return std::unique_ptr<OpenTransaction>(std::make_unique<Transaction>(std::move(client).value()));
}

Status produce_and_abort(const std::string& brokers, const std::string& topic,
                         const std::vector<TestRecord>& records) {
  Result<Client> client = open_transactional(brokers, topic);
  if (!client) return client.error();
  if (auto begun = begin_with(client.value().get(), topic, records); !begun) return begun;
  return done(rd_kafka_abort_transaction(client.value().get(), 2 * call_timeout_ms));
}

Result<std::vector<TestRecord>> consume(const std::string& brokers, const std::string& topic, int partition,
                                        std::int64_t offset, std::size_t count, Duration deadline) {
  Result<Client> client = open_consumer(brokers, "rivulet-test-reader");
  if (!client) return client.error();
  rd_kafka_t* handle = client.value().get();
  rd_kafka_poll_set_consumer(handle);
  rd_kafka_assign(handle, one_partition(topic, partition, offset).get());
  std::vector<TestRecord> records;
  const RealClock clock;
  const TimePoint end = clock.now() + deadline;
  while (records.size() < count && clock.now() < end) {
    const Owned<rd_kafka_message_t, rd_kafka_message_destroy> message(rd_kafka_consumer_poll(handle, 100));
    if (message == nullptr) continue;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) records.push_back(to_record(*message));
    if (message->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET) return failure(message->err, topic);
  }
  rd_kafka_consumer_close(handle);
  if (records.size() == count) return records;
  return Error{ErrorCode::unavailable, "only " + std::to_string(records.size()) + " of " +
                                           std::to_string(count) + " records of " + topic + " came"};
}

Result<std::pair<std::int64_t, std::int64_t>> watermarks(const std::string& brokers, const std::string& topic,
                                                         int partition) {
  Result<Client> client = open_consumer(brokers, "rivulet-test-reader");
  if (!client) return client.error();
  std::pair<std::int64_t, std::int64_t> ends;
  const rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
      client.value().get(), topic.c_str(), partition, &ends.first, &ends.second, call_timeout_ms);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return failure(code, "no watermarks of " + topic);
  return ends;
}

Result<std::int64_t> committed_offset(const std::string& brokers, const std::string& group,
                                      const std::string& topic, int partition) {
  Result<Client> client = open_consumer(brokers, group);
  if (!client) return client.error();
  const Offsets list = one_partition(topic, partition, RD_KAFKA_OFFSET_INVALID);
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
  // A broker that has just started rejects group requests for a while.
  wait_until(
      [&] {
        code = rd_kafka_committed(client.value().get(), list.get(), call_timeout_ms);
        return code != RD_KAFKA_RESP_ERR_NOT_COORDINATOR &&
               code != RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE &&
               code != RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS;
      },
      std::chrono::seconds(10));
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return failure(code, "no offsets of " + group);
  const std::int64_t offset = list->elems[0].offset;
  return offset < 0 ? -1 : offset;
}

}  // namespace rivulet::testing
