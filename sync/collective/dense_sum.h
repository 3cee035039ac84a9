#pragma once
#include <cstdint>
#include <memory>

#include "sync/collective/aggregation.h"

namespace rivulet::sync {

/// Algorithms for summing uncompressed vectors. Two ranks always exchange their complete vectors.
enum class SumSchedule : std::uint8_t {
  by_size,           ///< halving_doubling below 1 MB, else ring
  ring,              ///< 2 (N - 1) steps
  halving_doubling,  ///< 2 log2(N) steps if N is a power of two, else ring
};

/// Creates the in-place sum of uncompressed contributions. Sends 2 (N - 1) / N of a vector on Lane::sum. A
/// staged residual is sent as a whole.
std::unique_ptr<Aggregation> make_dense_sum(SumSchedule how = SumSchedule::by_size);

}  // namespace rivulet::sync
