#include "stream/kafka/offset_resolver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rivulet::stream::kafka {
namespace {

constexpr Duration patience_most = std::chrono::seconds(2);
constexpr Duration patience_least = std::chrono::milliseconds(250);
constexpr Duration pause_at_start = std::chrono::milliseconds(100);
constexpr Duration pause = std::chrono::seconds(1);
/// A topic that was just created, or whose broker was replaced, briefly has no leader.
constexpr Duration a_moment = std::chrono::seconds(2);
/// Longer, because the separate client must connect first.
constexpr Duration patience_with_doubts = std::chrono::seconds(3);
constexpr Duration pause_of_doubts = std::chrono::seconds(2);
constexpr Default own_defaults[] = {{"isolation.level", "read_committed"}};

}  // namespace

OffsetResolver::OffsetResolver(const KafkaSourceConfig& config, Partitions& partitions, Notices& notices)
    : config_(config), partitions_(partitions), notices_(notices), brokers_(brokers_of(config.properties)) {}

Result<bool> OffsetResolver::serve(rd_kafka_s* client, TimePoint now) {
  bool changed = false;
  const bool was_asking = survey_.busy();
  for (const Finding& finding : survey_.take())
    if (auto status = take(finding, now, changed); !status) return status.error();
  const bool was_doubting = doubts_.busy();
  for (const Finding& finding : doubts_.take()) {
    Partition* partition = partitions_.find_number(finding.slot);
    if (partition == nullptr) continue;  // dropped since the query
    if (finding.kind == Finding::Kind::marks)
      partition->reached();
    else
      partition->miss(why(*partition, finding), now, Duration(0));
  }
  if (was_asking && !survey_.busy()) next_query_ = now + (any_resolved_ ? pause : pause_at_start);
  if (was_doubting && !doubts_.busy()) next_doubt_ = now + pause_of_doubts;
  query(client, now);
  query_doubtful(now);
  return changed;
}

void OffsetResolver::query(rd_kafka_s* client, TimePoint now) {
  if (survey_.busy() || now < next_query_) return;
  std::vector<Question> questions;
  for (const auto& [id, partition] : partitions_.all())
    if (partition.is_unresolved()) questions.push_back({partition.number(), partition.name()});
  if (questions.empty()) return;
  if (!deadline_) deadline_ = now + config_.open_deadline;
  const Duration patience =
      any_resolved_ ? patience_most : std::clamp<Duration>(*deadline_ - now, patience_least, patience_most);
  survey_.start(client, std::move(questions), patience);
}

void OffsetResolver::query_doubtful(TimePoint now) {
  if (doubts_.busy() || now < next_doubt_) return;
  std::vector<Question> questions;
  for (const auto& [id, partition] : partitions_.all())
    if (partition.is_read() && partition.is_doubtful())
      questions.push_back({partition.number(), partition.name()});
  if (questions.empty()) return;
  const auto open = [this]() -> std::unique_ptr<Client> {
    std::vector<Default> defaults(std::begin(own_defaults), std::end(own_defaults));
    if (!config_.client_id.empty()) defaults.emplace_back("client.id", config_.client_id);
    auto client = Client::open(ClientKind::consumer, config_.properties, defaults, nobody_listens_);
    return client ? std::move(client).value() : nullptr;
  };
  doubts_.start(open, std::move(questions), patience_with_doubts);
}

Status OffsetResolver::take(const Finding& finding, TimePoint now, bool& changed) {
  Partition* partition = partitions_.find_number(finding.slot);
  if (partition == nullptr) return ok();  // dropped since the query
  if (finding.kind != Finding::Kind::marks) {
    const std::string words = why(*partition, finding);
    partition->miss(words, now, a_moment);
    return judge_start(*partition, finding, words, now);
  }
  notices_.answered(finding.leader.address);
  partition->reached();
  if (!partition->is_unresolved()) return ok();
  partition->resolve(finding.marks, start_of(*partition, finding.marks), config_.count_gaps);
  any_resolved_ = changed = true;
  return ok();
}

/// A device that has something to read continues: a silent leader may return.
Status OffsetResolver::judge_start(Partition& partition, const Finding& finding, const std::string& why,
                                   TimePoint now) {
  using Kind = Finding::Kind;
  if (finding.kind == Kind::silent || finding.kind == Kind::leaderless) partition.see();
  const bool absent = finding.kind == Kind::no_topic || finding.kind == Kind::no_partition;
  const bool was_there = partition.was_there();
  if (any_resolved_ && (!absent || was_there)) return ok();
  if (finding.kind == Kind::no_partition && !was_there) return Error{ErrorCode::unavailable, why};
  if (now < deadline_.value_or(now)) return ok();
  if (finding.kind != Kind::no_broker) return Error{ErrorCode::unavailable, why};
  return Error{ErrorCode::unavailable,
               fmt::format("no broker answered at {} within {:.0f} s: {} ({})", brokers_,
                           to_seconds(config_.open_deadline), notices_.last_words(), finding.words)};
}

std::int64_t OffsetResolver::start_of(const Partition& partition, Watermarks marks) const {
  if (partition.start()) return *partition.start();
  switch (config_.start.kind) {
    case StartOffset::Kind::earliest: return marks.low;
    case StartOffset::Kind::latest: return marks.high;
    case StartOffset::Kind::absolute: break;
  }
  return config_.start.offset;
}

std::string OffsetResolver::why(const Partition& partition, const Finding& finding) const {
  const auto& words = finding.kind == Finding::Kind::no_broker ? notices_.last_words()
                                                               : notices_.words_about(finding.leader.address);
  return why_unread(partition.name(), finding, words, brokers_);
}

}  // namespace rivulet::stream::kafka
