#include "runtime/cli/ledger.h"

#include <fmt/format.h>

#include "runtime/cli/text.h"
#include "runtime/process/topic_name.h"

namespace rivulet::runtime::cli {
namespace {

constexpr Duration broker_patience = std::chrono::seconds(10);

}  // namespace

std::string PartitionLedger::trouble() const {
  if (!entries.adds_up()) return "row counts do not match the offsets";
  if (ends && ends->high < entries.next.offset)
    return fmt::format(
        "the log ends at offset {}, before the next offset {}; check whether the topic was recreated",
        ends->high, entries.next.offset);
  if (ends && ends->low > entries.next.offset)
    return fmt::format("offsets {} to {} were deleted from the log unread", entries.next.offset, ends->low);
  return {};
}

std::vector<PartitionLedger> ledger_of(const StateFacts& state, const std::vector<std::string>& topics,
                                       const std::string& topic) {
  std::vector<PartitionLedger> all;
  for (const auto& [id, books] : state.partitions) {
    const std::string name = topic_of(id, topics);
    if (topic.empty() || topic == name) all.push_back({name, id, books, std::nullopt});
  }
  return all;
}

Status query_broker(const stream::Properties& properties, std::vector<PartitionLedger>& books) {
  std::vector<stream::TopicPartition> partitions;
  partitions.reserve(books.size());
  for (const auto& one : books) partitions.push_back({one.topic, one.id});
  auto ends = stream::log_ends(properties, partitions, broker_patience);
  if (!ends) return ends.error();
  for (std::size_t i = 0; i < books.size(); ++i) books[i].ends = ends.value()[i];
  return ok();
}

LedgerVerdict verdict_on(const std::vector<PartitionLedger>& books) {
  LedgerVerdict verdict;
  std::uint64_t trained = 0;
  std::uint64_t dropped = 0;
  std::int64_t waiting = 0;
  for (const auto& one : books) {
    trained += one.entries.trained;
    dropped += one.entries.all_dropped();
    waiting += one.waiting();
    const auto trouble = one.trouble();
    if (trouble.empty()) continue;
    verdict.balanced = false;
    verdict.text +=
        fmt::format("{}{}:{}: {}", verdict.text.empty() ? "" : "; ", one.topic, one.id.partition, trouble);
  }
  if (!verdict.balanced) return verdict;
  verdict.text =
      fmt::format("every row is accounted for: {} trained, {} dropped, {} still in the broker",
                  grouped(trained), grouped(dropped), grouped(static_cast<std::uint64_t>(waiting)));
  return verdict;
}

}  // namespace rivulet::runtime::cli
