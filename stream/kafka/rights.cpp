#include "stream/rights.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "stream/kafka/client.h"

namespace rivulet::stream {
namespace {

/// The first result, and the client's last error.
struct Verdict final : kafka::Listener {
  void client_error(int code, std::string_view words) noexcept override {
    if (code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) last_words = words.substr(0, 300);
  }
  void committed(int code) noexcept override { came(code); }
  void delivered(int code, std::int32_t, std::size_t) noexcept override { came(code); }
  void came(int code) noexcept {
    if (!answer) answer = code;
  }
  std::optional<int> answer;
  std::string last_words;
};

Error unanswered(const std::string& what, const std::string& why, const Verdict& verdict) {
  const std::string words = verdict.last_words.empty() ? "" : " (" + verdict.last_words + ")";
  return {ErrorCode::timed_out, what + ": " + why + words};
}

/// Waits for the answer to a commit. If the user may not see the group's coordinator, that error arrives as a
/// record, and the commit stays pending.
int answer_to_commit(rd_kafka_s* consumer, Verdict& verdict, Duration deadline) {
  const RealClock clock;
  const TimePoint end = clock.now() + deadline;
  while (!verdict.answer && clock.now() < end) {
    const kafka::Message record(rd_kafka_consumer_poll(consumer, 100));
    if (record && record->err == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED) verdict.came(record->err);
  }
  return verdict.answer.value_or(RD_KAFKA_RESP_ERR__TIMED_OUT);
}

Properties without(Properties properties, std::initializer_list<std::string_view> names) {
  std::erase_if(properties, [&](const auto& property) {
    return std::find(names.begin(), names.end(), property.first) != names.end();
  });
  return properties;
}

}  // namespace

Status try_reading(const Properties& properties, const std::string& topic, int beyond,
                   const std::string& group, Duration deadline) {
  const std::vector<kafka::Default> defaults{{"group.id", group},
                                             {"socket.timeout.ms", "2500"},
                                             {"session.timeout.ms", "2500"},
                                             {"heartbeat.interval.ms", "1000"}};
  Verdict verdict;
  auto client = kafka::Client::open(kafka::ClientKind::consumer, properties, defaults, verdict);
  if (!client) return client.error();
  rd_kafka_s* handle = client.value()->handle();
  const std::string what = "reading topic " + topic + " and committing as group " + group;
  if (const auto seen = kafka::partitions_of(handle, topic, deadline); !seen)
    return unanswered(what, seen.error().message, verdict);
  if (kafka::is_embedded(handle)) return ok();
  kafka::PartitionList nowhere;
  nowhere.add(topic, beyond, 0);
  client.value()->expect_commits();
  if (const auto code = rd_kafka_commit(handle, nowhere.get(), 1); code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return unanswered(what, kafka::words_of(code), verdict);
  const int answer = answer_to_commit(handle, verdict, deadline);
  if (answer == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) return ok();
  if (answer == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED)
    return Error{ErrorCode::unavailable, "this user is not authorized to READ the group " + group};
  if (answer == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
    return Error{ErrorCode::unavailable, "this user is not authorized to READ the topic " + topic};
  return unanswered(what, kafka::words_of(answer), verdict);
}

Status try_writing(const Properties& properties, const std::string& topic, Duration deadline) {
  const std::string give_up_ms = std::to_string(kafka::to_ms(deadline));
  const std::vector<kafka::Default> defaults{
      {"acks", "2"}, {"enable.idempotence", "false"}, {"message.timeout.ms", give_up_ms}};
  // With a valid number of acknowledgements, as a user may set, the record would be written.
  const Properties ours = without(properties, {"acks", "request.required.acks", "enable.idempotence",
                                               "transactional.id", "message.timeout.ms"});
  Verdict verdict;
  auto client = kafka::Client::open(kafka::ClientKind::producer, ours, defaults, verdict);
  if (!client) return client.error();
  rd_kafka_s* handle = client.value()->handle();
  const std::string what = "writing to topic " + topic;
  if (const auto seen = kafka::partitions_of(handle, topic, deadline); !seen)
    return unanswered(what, seen.error().message, verdict);
  if (kafka::is_embedded(handle)) return ok();
  const auto code = rd_kafka_producev(handle, RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(0),
                                      RD_KAFKA_V_VALUE(nullptr, 0), RD_KAFKA_V_END);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return unanswered(what, kafka::words_of(code), verdict);
  rd_kafka_flush(handle, kafka::to_ms(deadline) + 1000);  // invokes the callbacks
  const int answer = verdict.answer.value_or(RD_KAFKA_RESP_ERR__TIMED_OUT);
  if (answer == RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS || answer == RD_KAFKA_RESP_ERR_NO_ERROR) return ok();
  if (answer == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
    return Error{ErrorCode::unavailable, "this user is not authorized to WRITE to the topic " + topic};
  return unanswered(what, kafka::words_of(answer), verdict);
}

}  // namespace rivulet::stream
