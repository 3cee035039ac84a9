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

/// What became of the rows of one partition: by the group's ledger and by the broker.
struct PartitionBooks {
  std::string topic;
  PartitionId id;
  PartitionProgress books;
  std::optional<stream::LogEnds> ends;  ///< none: the broker was not asked

  [[nodiscard]] std::int64_t waiting() const { return ends ? ends->high - books.next.offset : 0; }
  /// What is wrong with it; empty if all is accounted for.
  [[nodiscard]] std::string trouble() const;
};

/// Of all partitions of the state; `topic`: only of this one, empty = all.
std::vector<PartitionBooks> books_of(const StateFacts& state, const std::vector<std::string>& topics,
                                     const std::string& topic);
/// Fills in how far the logs reach. Errors: unavailable.
Status ask_broker(const stream::Properties& properties, std::vector<PartitionBooks>& books);

/// The ledger of a whole job in one sentence.
struct BooksVerdict {
  bool balanced = true;
  std::string text;
};
BooksVerdict verdict_on(const std::vector<PartitionBooks>& books);

}  // namespace rivulet::runtime::cli
