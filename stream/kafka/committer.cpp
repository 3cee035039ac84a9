#include "stream/kafka/committer.h"

#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include <vector>

namespace rivulet::stream::kafka {

Status Committer::commit(std::unique_ptr<PartitionList> offsets) {
  latest_ = std::move(offsets);
  return send();
}

Status Committer::send() {
  failed_ = false;
  if (!client_) {
    // There is no group session: its timeout only bounds a commit's wait for an unreachable coordinator.
    std::vector<Default> defaults{
        {"socket.timeout.ms", "2500"}, {"session.timeout.ms", "2500"}, {"heartbeat.interval.ms", "1000"}};
    if (!group_id_.empty()) defaults.emplace_back("group.id", group_id_);
    if (!client_id_.empty()) defaults.emplace_back("client.id", client_id_);
    auto client = Client::open(ClientKind::consumer, properties_, defaults, *this);
    if (!client) return Error{ErrorCode::source_lost, client.error().message};
    client_ = std::move(client).value();
    client_->expect_commits();
  }
  const auto code = rd_kafka_commit(client_->handle(), latest_->get(), 1);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return ok();
  return Error{ErrorCode::source_lost,
               fmt::format("offsets of group {} cannot be committed: {}", group_id_, words_of(code))};
}

void Committer::accepted(std::string_view topic, std::int32_t partition, std::int64_t offset) noexcept {
  accepted_.push_back({std::string(topic), partition, offset});
}

void Committer::committed(int code) noexcept {
  failed_ = code != RD_KAFKA_RESP_ERR_NO_ERROR && code != RD_KAFKA_RESP_ERR__NO_OFFSET;
  listener_.committed(code);
}

void Committer::serve(TimePoint now) {
  if (!client_) return;
  if (!failed_) again_at_ = now + again_after;
  if (failed_ && now >= again_at_) static_cast<void>(send());
  if (rd_kafka_message_t* message = rd_kafka_consumer_poll(client_->handle(), 0); message != nullptr)
    rd_kafka_message_destroy(message);
}

}  // namespace rivulet::stream::kafka
