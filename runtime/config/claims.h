#pragma once
#include <string>
#include <vector>

#include "runtime/config/layers.h"

namespace rivulet::runtime {

/// Fills source.topics, partitions and claims of `config` from what was written (values as coerce() returned
/// them). `partitions_written` is false when they are the default: then "topic:0-3" among the topics replaces
/// them.
void resolve_claims(Config& config, const Setting& topics, const Setting& partitions, bool partitions_written,
                    Problems& problems);

}  // namespace rivulet::runtime
