#include "sync/collective/aggregation.h"

namespace rivulet::sync {

std::unique_ptr<Aggregation> make_aggregation(const AggregationEntry& entry, Transport& transport) {
  const bool gathers = transport.gathering() != nullptr && entry.make_gathered != nullptr;
  return gathers ? entry.make_gathered() : entry.make();
}

std::unique_ptr<SpeculativeAggregation> make_speculative(const AggregationEntry& entry,
                                                         Transport& transport) {
  return entry.make_speculative(transport.gathering() != nullptr);
}

}  // namespace rivulet::sync
