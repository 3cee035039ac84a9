#include "sync/collective/dense_sum.h"

namespace rivulet::sync {

extern const AggregationEntry aggregation_sum;
const AggregationEntry aggregation_sum{
    .name = "sum",
    .help = "all-reduce of uncompressed contributions, by an algorithm chosen by size",
    .make = [] { return make_dense_sum(); },
    .fits = &sums_whole,
    .stands_in = true,
    // Below a quarter of a MiB saved, its phases cost more than its bytes.
    .worth_saving = 256.0 * 1024};

}  // namespace rivulet::sync
