#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/clock.h"
#include "devices/trainer.h"
#include "stream/source.h"

/// Numbered rows, and a model that is the sum of what it was trained on: from its parameters alone it can be
/// told whether each row went into it exactly once, by code that shares nothing with the ledger.
namespace rivulet::testing {

inline constexpr std::size_t sim_row_columns = 2;  ///< partition, and a number drawn from the row's position
/// Every row's label: its bytes are found where no bytes of a row belong.
inline constexpr float sim_row_label = 12345.678F;

/// What the record at an offset is: rows that can be trained, one that is bad, or nothing at all.
enum class SimRecord : std::uint8_t { rows, bad, hole };
SimRecord kind_of_record(std::int32_t partition, std::int64_t offset);
std::uint32_t rows_in_record(std::int32_t partition, std::int64_t offset);

/// What the model says of one partition.
struct RowSums {
  double rows = 0;
  double numbers = 0;  ///< sum of the rows' numbers
  bool operator==(const RowSums&) const = default;
};
/// Of all trainable rows below a place, each once. Remembers what it has added up.
class RowTable {
 public:
  RowSums below(std::int32_t partition, const RowCursor& end);

 private:
  std::map<std::int32_t, std::vector<RowSums>> below_;  ///< index = offset
};

using CommitWatch = std::function<void(std::span<const NextOffset>)>;
/// A partition that gets `per_second` records from time 0 on, for ever; nothing can be read of it before
/// `silent_until`, which others may move.
std::unique_ptr<stream::RecordSource> make_sim_source(std::int32_t partition, double per_second,
                                                      const Clock& clock, const TimePoint& silent_until,
                                                      CommitWatch on_commit);

/// The model "sums": three numbers per partition (parameters 3p .. 3p + 2), the first two RowSums. Partitions
/// are as many as `model.hidden` says first.
std::span<const devices::ModelEntry* const> sim_models() noexcept;
/// What the parameters of such a model say of a partition.
RowSums sums_in(const devices::ModelState& model, std::int32_t partition);

}  // namespace rivulet::testing
