#pragma once
#include <cstdint>
#include <memory>

#include "sync/collective/aggregation.h"

namespace rivulet::sync {

/// How ranks add up whole vectors. Two of them send each other all they have, whatever is asked for.
enum class SumSchedule : std::uint8_t {
  by_size,           ///< halving_doubling for less than 1 MB, else ring
  ring,              ///< 2 (N - 1) steps
  halving_doubling,  ///< 2 log2(N) steps, where N is a power of two; else ring
};

/// The sum of whole contributions, in place: sends 2 (N - 1) / N of a vector, in messages of the lane of
/// sums. What is staged in a residual leaves it whole.
std::unique_ptr<Aggregation> make_dense_sum(SumSchedule how = SumSchedule::by_size);

}  // namespace rivulet::sync
