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

/// Row counts of one partition by the group's ledger, and its log ends by the broker.
struct PartitionBooks {
  std::string topic;
  PartitionId id;
  PartitionProgress books;
  std::optional<stream::LogEnds> ends;  ///< nullopt: the broker was not queried

  [[nodiscard]] std::int64_t waiting() const { return ends ? ends->high - books.next.offset : 0; }
  /// Describes what does not balance; empty if every row is accounted for.
  [[nodiscard]] std::string trouble() const;
};

/// Ledgers of all partitions of the state, or only of `topic` unless empty.
std::vector<PartitionBooks> books_of(const StateFacts& state, const std::vector<std::string>& topics,
                                     const std::string& topic);
/// Adds the log ends from the broker. Errors: unavailable.
Status ask_broker(const stream::Properties& properties, std::vector<PartitionBooks>& books);

/// One sentence on the ledger of the whole job.
struct BooksVerdict {
  bool balanced = true;
  std::string text;
};
BooksVerdict verdict_on(const std::vector<PartitionBooks>& books);

}  // namespace rivulet::runtime::cli
