#include "stream/kafka/log_probe.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>

namespace rivulet::stream::kafka {
namespace {

/// Fetches at least one batch of records per partition, which suffices.
constexpr Default probe_defaults[] = {
    {"auto.offset.reset", "error"},      {"enable.auto.offset.store", "false"},
    {"enable.partition.eof", "true"},    {"isolation.level", "read_committed"},
    {"fetch.message.max.bytes", "1024"}, {"queued.min.messages", "1"},
    {"queued.max.messages.kbytes", "64"}};

}  // namespace

Result<std::unique_ptr<LogProbe>> LogProbe::query(const Properties& properties, const std::string& group,
                                                  std::vector<Question> questions) {
  std::vector<Default> defaults(std::begin(probe_defaults), std::end(probe_defaults));
  defaults.emplace_back("group.id", group);
  PartitionList list;
  for (const auto& question : questions)
    list.add(question.partition.topic, question.partition.id.partition, question.anchor.offset);
  std::unique_ptr<LogProbe> probe(new LogProbe(std::move(questions)));
  auto client = Client::open(ClientKind::consumer, properties, defaults, *probe);
  if (!client) return client.error();
  probe->client_ = std::move(client).value();
  if (auto status = assign(probe->client_->handle(), list); !status) return status.error();
  return probe;
}

std::optional<LogProbe::Answer> LogProbe::poll(Duration wait) {
  const Message message(rd_kafka_consumer_poll(client_->handle(), to_ms(wait)));
  if (!message || message->rkt == nullptr) return std::nullopt;
  const auto about = std::find_if(questions_.begin(), questions_.end(), [&](const Question& question) {
    return question.partition.id.partition == message->partition &&
           question.partition.topic == rd_kafka_topic_name(message->rkt);
  });
  if (about == questions_.end()) return std::nullopt;
  const auto finding = judge(*about, *message);
  if (!finding) return std::nullopt;
  const Answer answer{about->slot, *finding};
  questions_.erase(about);
  return answer;
}

std::optional<LogProbe::Finding> LogProbe::judge(const Question& question,
                                                 const rd_kafka_message_s& message) const {
  const Anchor& anchor = question.anchor;
  if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (message.offset > anchor.offset) return Finding::gone;  // compacted away
    return anchor_of(message) == anchor ? Finding::same : Finding::other;
  }
  if (message.err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
    return message.offset <= anchor.offset ? Finding::other : Finding::gone;
  if (message.err != RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET) return std::nullopt;
  const auto marks = query_watermarks(client_->handle(), question.partition.topic,
                                      question.partition.id.partition, std::chrono::milliseconds(500));
  if (!marks) return std::nullopt;  // the question stays open; a later probe repeats it
  return anchor.offset < marks.value().low ? Finding::gone : Finding::other;
}

}  // namespace rivulet::stream::kafka
