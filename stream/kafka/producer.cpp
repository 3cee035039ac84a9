#include "stream/kafka/producer.h"

#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

namespace rivulet::stream::kafka {

Result<std::unique_ptr<Producer>> Producer::open(const Properties& properties, const std::string& topic,
                                                 const std::string& client_id, Duration linger,
                                                 Duration give_up_after) {
  const std::string linger_ms = std::to_string(to_ms(linger));
  const std::string give_up_ms = std::to_string(to_ms(give_up_after));
  std::vector<Default> defaults{{"linger.ms", linger_ms}, {"message.timeout.ms", give_up_ms}};
  // Idempotence excludes settings that a user may need; the user's settings take precedence.
  const auto free = [&](std::string_view name) { return property(properties, name).empty(); };
  if (free("acks") && free("request.required.acks") && free("max.in.flight") && free("retries") &&
      free("max.in.flight.requests.per.connection") && free("enable.idempotence"))
    defaults.emplace_back("enable.idempotence", "true");
  if (!client_id.empty()) defaults.emplace_back("client.id", client_id);
  std::unique_ptr<Producer> producer(new Producer(topic));
  auto client = Client::open(ClientKind::producer, properties, defaults, *producer);
  if (!client) return client.error();
  producer->client_ = std::move(client).value();
  return producer;
}

Producer::~Producer() = default;

void Producer::look_up(Duration timeout) {
  static_cast<void>(partitions_of(client_->handle(), topic_, timeout));
}

Result<bool> Producer::send(std::int32_t partition, std::span<const std::byte> value,
                            std::int64_t timestamp_ms) {
  void* bytes = const_cast<std::byte*>(value.data());  // copied, not modified
  const auto code =
      rd_kafka_producev(client_->handle(), RD_KAFKA_V_TOPIC(topic_.c_str()), RD_KAFKA_V_PARTITION(partition),
                        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE(bytes, value.size()),
                        RD_KAFKA_V_TIMESTAMP(timestamp_ms), RD_KAFKA_V_END);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return true;
  if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL) return false;
  return Error{ErrorCode::unavailable,
               fmt::format("topic \"{}\", partition {}: a record of {} bytes cannot be written: {}", topic_,
                           partition, value.size(), words_of(code))};
}

Status Producer::serve(Duration max_wait) {
  rd_kafka_poll(client_->handle(), to_ms(max_wait));
  return take_failure();
}

Status Producer::flush(Duration deadline) {
  const auto code = rd_kafka_flush(client_->handle(), to_ms(deadline));
  if (auto status = take_failure(); !status) return status;
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return ok();
  return Error{ErrorCode::io, fmt::format("topic \"{}\": {} records were not acknowledged in time{}{}",
                                          topic_, rd_kafka_outq_len(client_->handle()),
                                          last_words_.empty() ? "" : ": ", last_words_)};
}

Status Producer::take_failure() {
  if (!failure_) return ok();
  Error error = std::move(*failure_);
  failure_.reset();
  if (failed_ > 1) error.message += fmt::format(" (and {} more records)", failed_ - 1);
  failed_ = 0;
  return error;
}

void Producer::client_error(int code, std::string_view words) noexcept {
  if (code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || last_words_.empty()) last_words_ = words;
}

void Producer::delivered(int code, std::int32_t partition, std::size_t bytes) noexcept {
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
    ++delivered_;
    return;
  }
  ++failed_;
  if (failure_) return;
  failure_ =
      Error{ErrorCode::io,
            fmt::format("topic \"{}\", partition {}: a record of {} bytes was not written: {}{}{}", topic_,
                        partition, bytes, words_of(code), last_words_.empty() ? "" : "; ", last_words_)};
}

}  // namespace rivulet::stream::kafka
