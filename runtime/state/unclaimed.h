#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/record.h"
#include "runtime/state/partition_progress.h"

namespace rivulet::runtime {

/// Of the partitions that the agreed state knows, so that they were trained, those that no member of the view
/// claims: nobody reads them, and their rows wait until retention takes them. As "mnist:1", in the state's
/// order. `claims`: by device, in the same words (ClosedView::claims). `topics`: names behind
/// PartitionId::topic. Pure.
std::vector<std::string> unclaimed_partitions(const std::map<PartitionId, PartitionProgress>& known,
                                              const std::map<std::string, std::vector<std::string>>& claims,
                                              std::span<const std::string> topics);

}  // namespace rivulet::runtime
