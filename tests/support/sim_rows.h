#pragma once
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/clock.h"
#include "devices/optimizer.h"
#include "devices/trainer.h"
#include "stream/source.h"
#include "tests/support/sim_faults.h"

/// Numbered rows, and a model that is the sum of what it was trained on: from its parameters alone it can be
/// told whether each row went into it exactly once, by code that shares nothing with the ledger.
namespace rivulet::testing {

/// What is known of all streams from outside: they may fall silent, and their oldest records may be deleted.
struct SimStreams {
  double records_per_second = 150;  ///< of each, from time 0 on, for ever
  TimePoint silent_until{};
  std::vector<std::int64_t> kept_from;  ///< by partition: all below is deleted
  mutable SimFaultCounts faults;        ///< of those who read
};

inline constexpr std::size_t sim_row_columns = 2;  ///< partition, and a number drawn from the row's position
/// Every row's label: its bytes are found where no bytes of a row belong. They are not text, and no mean of
/// rows begins or ends as they do.
inline constexpr float sim_row_label = std::bit_cast<float>(0x71a5c3e9U);

/// What the record at an offset is: rows that can be trained, one that is bad, or nothing at all.
enum class SimRecord : std::uint8_t { rows, bad, hole };
SimRecord kind_of_record(std::int32_t partition, std::int64_t offset);
std::uint32_t rows_in_record(std::int32_t partition, std::int64_t offset);

/// The number of every trainable row between two places, in order.
void for_each_row(std::int32_t partition, const RowCursor& from, const RowCursor& to,
                  const std::function<void(const RowCursor& at, double number)>& take);

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
/// One partition. Records that were deleted before they were read are gone over and counted. `streams`
/// outlives the source, and others may change it.
std::unique_ptr<stream::RecordSource> make_sim_source(std::int32_t partition, const SimStreams& streams,
                                                      const Clock& clock, CommitWatch on_commit);

/// What the model learns besides: a row's height over its number, by SGD with momentum. Heights scatter
/// around a line, so the best loss is known and is not zero.
struct SimLine {
  double height = 0, slope = 0;
  double height_moves = 0, slope_moves = 0;  ///< momentum
};
inline constexpr double sim_learning_rate = 0.002;
inline constexpr double sim_momentum = 0.9;
/// Mean squared error over numbers that are the same for everybody.
double loss_of(const SimLine& line);
/// One step with the mean gradient over rows of these numbers, if there are any.
SimLine learned(SimLine line, std::span<const double> numbers);

/// The model "sums": three numbers per partition (parameters 3p .. 3p + 2), the first two RowSums, and behind
/// them height and slope of a line. Partitions are as many as `model.mlp.hidden` says first.
std::span<const devices::OptimizerEntry* const> sim_optimizers() noexcept;
std::span<const devices::ModelEntry* const> sim_models() noexcept;
/// What the parameters of such a model say of a partition.
RowSums sums_in(const devices::ModelState& model, std::int32_t partition);
SimLine line_in(const devices::ModelState& model);

}  // namespace rivulet::testing
