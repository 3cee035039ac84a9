#include "stream/topics.h"

#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include <array>
#include <memory>

#include "stream/kafka/client.h"
#include "stream/rights.h"

namespace rivulet::stream {
namespace {

template <auto destroy>
struct With {
  template <class T>
  void operator()(T* pointer) const {
    destroy(pointer);
  }
};
using Queue = std::unique_ptr<rd_kafka_queue_t, With<rd_kafka_queue_destroy>>;
using NewTopic = std::unique_ptr<rd_kafka_NewTopic_t, With<rd_kafka_NewTopic_destroy>>;
using Options = std::unique_ptr<rd_kafka_AdminOptions_t, With<rd_kafka_AdminOptions_destroy>>;
using Event = std::unique_ptr<rd_kafka_event_t, With<rd_kafka_event_destroy>>;
using TextBuffer = std::array<char, 512>;

Error unavailable(const std::string& topic, const char* why) {
  return {ErrorCode::unavailable, fmt::format("cannot create topic {}: {}", topic, why)};
}

/// The client's last error. It names an unreachable broker: the request goes to the controller, at the
/// address that the controller advertises.
struct LastWords final : kafka::Listener {
  void client_error(int code, std::string_view text) noexcept override {
    if (code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) words = " (" + std::string(text.substr(0, 300)) + ")";
  }
  std::string words;
};

Status judge(const Event& event, const std::string& topic, const std::string& silence) {
  const auto* result = event ? rd_kafka_event_CreateTopics_result(event.get()) : nullptr;
  const auto error = event ? rd_kafka_event_error(event.get()) : RD_KAFKA_RESP_ERR__TIMED_OUT;
  if (result == nullptr || error == RD_KAFKA_RESP_ERR__TIMED_OUT)
    return Error{ErrorCode::timed_out, unavailable(topic, silence.c_str()).message};
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    return unavailable(topic, rd_kafka_event_error_string(event.get()));
  std::size_t count = 0;
  const auto* const* topics = rd_kafka_CreateTopics_result_topics(result, &count);
  if (count != 1) return unavailable(topic, "the broker's response does not include the topic");
  const auto code = rd_kafka_topic_result_error(topics[0]);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) return ok();
  const char* why = rd_kafka_topic_result_error_string(topics[0]);
  return unavailable(topic, why != nullptr ? why : rd_kafka_err2str(code));
}

}  // namespace

Status create_topic(const Properties& properties, const std::string& topic, int partitions,
                    Duration deadline) {
  return create_topic(properties, topic, partitions, deadline, {});
}

namespace {

Status query_topic(const Properties& properties, const std::string& topic, int partitions, Duration deadline,
                   const Properties& settings, bool check_only) {
  TextBuffer text{};
  LastWords last;
  auto opened = kafka::Client::open(kafka::ClientKind::producer, properties, {}, last);
  if (!opened) return opened.error();
  rd_kafka_t* client = opened.value()->handle();
  const NewTopic wanted(rd_kafka_NewTopic_new(topic.c_str(), partitions, -1, text.data(), text.size()));
  if (!wanted) return unavailable(topic, text.data());
  for (const auto& [name, value] : settings)
    rd_kafka_NewTopic_set_config(wanted.get(), name.c_str(), value.c_str());
  const Options options(rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_CREATETOPICS));
  const auto ms = static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(deadline).count());
  rd_kafka_AdminOptions_set_request_timeout(options.get(), ms, nullptr, 0);
  rd_kafka_AdminOptions_set_operation_timeout(options.get(), ms, nullptr, 0);
  rd_kafka_AdminOptions_set_validate_only(options.get(), check_only ? 1 : 0, nullptr, 0);
  const Queue queue(rd_kafka_queue_new(client));
  rd_kafka_NewTopic_t* list[] = {wanted.get()};
  rd_kafka_CreateTopics(client, list, 1, options.get(), queue.get());
  const Event event(rd_kafka_queue_poll(queue.get(), ms + 200));
  rd_kafka_poll(client, 0);
  return judge(event, topic,
               fmt::format("{} did not answer the request within {:.0f} s{}", kafka::brokers_of(properties),
                           to_seconds(deadline), last.words));
}

}  // namespace

Status create_topic(const Properties& properties, const std::string& topic, int partitions, Duration deadline,
                    const Properties& settings) {
  return query_topic(properties, topic, partitions, deadline, settings, false);
}

Status try_creating(const Properties& properties, const std::string& topic, Duration deadline) {
  return query_topic(properties, topic, 1, deadline, {}, true);
}

}  // namespace rivulet::stream
