#include "sync/collective/aggregation.h"
#include "sync/collective/gathered_sum.h"
#include "sync/collective/slot_gather.h"

namespace rivulet::sync {

extern const AggregationEntry aggregation_gather;
const AggregationEntry aggregation_gather{
    .name = "gather",
    .help = "all-gather of the payloads; every device adds them in rank order",
    .make = []() -> std::unique_ptr<Aggregation> { return make_slot_gather(false); },
    .make_gathered = []() -> std::unique_ptr<Aggregation> { return make_gathered_sum(false); },
    .make_speculative =
        [](bool gathers) { return gathers ? make_gathered_sum(true) : make_slot_gather(true); },
    .stands_in = true,
    .pattern = Pattern::to_all,
    .may_leave_early = true};

}  // namespace rivulet::sync
