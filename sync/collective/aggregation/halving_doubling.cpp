#include "sync/collective/dense_sum.h"

namespace rivulet::sync {

extern const AggregationEntry aggregation_halving_doubling;
const AggregationEntry aggregation_halving_doubling{
    .name = "halving_doubling",
    .help = "all-reduce of uncompressed contributions by recursive halving and doubling",
    .make = [] { return make_dense_sum(SumSchedule::halving_doubling); },
    .fits = &sums_whole,
    .pattern = Pattern::halving_doubling};

}  // namespace rivulet::sync
