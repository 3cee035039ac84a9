#include "sync/collective/dense_sum.h"

namespace rivulet::sync {

extern const AggregationEntry aggregation_halving_doubling;
const AggregationEntry aggregation_halving_doubling{
    .name = "halving_doubling",
    .help = "sums whole contributions by recursive halving",
    .make = [] { return make_dense_sum(SumSchedule::halving_doubling); },
    .fits = &sums_whole,
    .pattern = Pattern::halving_doubling};

}  // namespace rivulet::sync
