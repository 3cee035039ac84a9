#include "sync/collective/dense_sum.h"

namespace rivulet::sync {

extern const AggregationEntry aggregation_ring;
const AggregationEntry aggregation_ring{.name = "ring",
                                        .help = "ring all-reduce of uncompressed contributions",
                                        .make = [] { return make_dense_sum(SumSchedule::ring); },
                                        .fits = &sums_whole,
                                        .pattern = Pattern::ring};

}  // namespace rivulet::sync
