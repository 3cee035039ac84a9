#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/record.h"
#include "runtime/cli/evaluation.h"
#include "runtime/state/partition_progress.h"
#include "stream/open.h"

namespace rivulet::runtime::cli {

/// Row counts of one partition according to the group's ledger, and its log ends according to the broker.
struct PartitionLedger {
  std::string topic;
  PartitionId id;
  PartitionProgress entries;
  std::optional<stream::LogEnds> ends;  ///< nullopt if the broker was not queried

  [[nodiscard]] std::int64_t waiting() const { return ends ? ends->high - entries.next.offset : 0; }
  /// Describes what does not balance; empty if every row is accounted for.
  [[nodiscard]] std::string trouble() const;
};

/// Returns the ledgers of all partitions in the state, or only those of `topic` if it is not empty.
std::vector<PartitionLedger> ledger_of(const StateFacts& state, const std::vector<std::string>& topics,
                                       const std::string& topic);
/// Adds the log ends from the broker. Errors: unavailable.
Status query_broker(const stream::Properties& properties, std::vector<PartitionLedger>& books);

/// One sentence on the ledger of the whole job.
struct LedgerVerdict {
  bool balanced = true;
  std::string text;
};
LedgerVerdict verdict_on(const std::vector<PartitionLedger>& books);

}  // namespace rivulet::runtime::cli
