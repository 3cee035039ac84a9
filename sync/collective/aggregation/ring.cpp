#include "sync/collective/dense_sum.h"

namespace rivulet::sync {

extern const AggregationEntry aggregation_ring;
const AggregationEntry aggregation_ring{
    .name = "ring",
    .help = "dense sum in place, always from neighbor to neighbor: fewest bytes at a time, most steps",
    .make = [] { return make_dense_sum(SumSchedule::ring); },
    .fits = &sums_whole,
    .pattern = Pattern::ring};

}  // namespace rivulet::sync
