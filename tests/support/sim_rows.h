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

/// Numbered rows, and a model that is the sum of its trained rows. Its parameters show whether each row was
/// trained exactly once. Shares no code with the ledger.
namespace rivulet::testing {

/// External state of all streams: they may fall silent, and their oldest records may be deleted.
struct SimStreams {
  double records_per_second = 150;  ///< of each, from time 0 on
  TimePoint silent_until{};
  std::vector<std::int64_t> kept_from;  ///< by partition: all below is deleted
  mutable SimFaultCounts faults;        ///< of readers
};

inline constexpr std::size_t sim_row_columns = 2;  ///< partition, and a number drawn from the row's position
/// Label of all rows: its bytes reveal rows in data where they do not belong. They are not text, and no mean
/// of rows begins or ends like them.
inline constexpr float sim_row_label = std::bit_cast<float>(0x71a5c3e9U);

/// Content of the record at an offset: trainable rows, a bad row, or none.
enum class SimRecord : std::uint8_t { rows, bad, hole };
SimRecord kind_of_record(std::int32_t partition, std::int64_t offset);
std::uint32_t rows_in_record(std::int32_t partition, std::int64_t offset);

/// Calls back with the number of every trainable row between two positions, in order.
void for_each_row(std::int32_t partition, const RowCursor& from, const RowCursor& to,
                  const std::function<void(const RowCursor& at, double number)>& take);

/// The model's values for one partition.
struct RowSums {
  double rows = 0;
  double numbers = 0;  ///< sum of the rows' numbers
  bool operator==(const RowSums&) const = default;
};
/// Sums over all trainable rows below a position. Caches partial sums.
class RowTable {
 public:
  RowSums below(std::int32_t partition, const RowCursor& end);

 private:
  std::map<std::int32_t, std::vector<RowSums>> below_;  ///< index = offset
};

using CommitWatch = std::function<void(std::span<const NextOffset>)>;
/// One partition. Counts records that were deleted before they were read as missing. `streams` must outlive
/// the source; others may change it.
std::unique_ptr<stream::RecordSource> make_sim_source(std::int32_t partition, const SimStreams& streams,
                                                      const Clock& clock, CommitWatch on_commit);

/// The model also learns a row's height from its number, by SGD with momentum. Heights scatter around a line,
/// so the minimum loss is known and positive.
struct SimLine {
  double height = 0, slope = 0;
  double height_moves = 0, slope_moves = 0;  ///< momentum
};
inline constexpr double sim_learning_rate = 0.002;
inline constexpr double sim_momentum = 0.9;
/// Mean squared error over fixed numbers.
double loss_of(const SimLine& line);
/// One step with the mean gradient over rows with these numbers; unchanged without rows.
SimLine learned(SimLine line, std::span<const double> numbers);

/// The model "sums": three values per partition (parameters 3p .. 3p + 2), the first two of them RowSums;
/// then height and slope of a line. The first value of `model.mlp.hidden` is the number of partitions.
std::span<const devices::OptimizerEntry* const> sim_optimizers() noexcept;
std::span<const devices::ModelEntry* const> sim_models() noexcept;
/// The values of such a model for a partition.
RowSums sums_in(const devices::ModelState& model, std::int32_t partition);
SimLine line_in(const devices::ModelState& model);

}  // namespace rivulet::testing
