#pragma once
#include <string>
#include <vector>

#include "runtime/config/layers.h"

namespace rivulet::runtime {

/// Fills source.topics, partitions and claims of `config` from the written values (as coerced).
/// `partitions_written`: false if the partitions are the default. Entries such as "topic:0-3" in the topics
/// then replace the default.
void resolve_claims(Config& config, const Setting& topics, const Setting& partitions, bool partitions_written,
                    Problems& problems);

}  // namespace rivulet::runtime
