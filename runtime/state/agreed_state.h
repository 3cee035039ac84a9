#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/digest.h"
#include "core/record.h"
#include "core/row.h"
#include "core/stamp.h"
#include "devices/model_state.h"
#include "runtime/state/partition_progress.h"
#include "sync/message/plan.h"

namespace rivulet::runtime {

/// The one value that is the group's, equal on every device after every round: model, clocks, and the next
/// row of every partition of the job. Parameters and offsets move together, so they can never disagree.
struct AgreedState {
  devices::ModelState model;
  Stamp stamp;
  std::uint64_t rows = 0;  ///< rows trained by the group
  std::map<PartitionId, PartitionProgress> partitions;
  std::vector<sync::policy::ControllerMemory> controllers = {};  ///< what they remember, after the last step

  /// Into the arrays that are there: both must have equal layouts and host-readable memory.
  void copy_from(const AgreedState& other);
  /// Of values, to a bit. Needs host-readable memory.
  bool operator==(const AgreedState& other) const;
};

/// Everybody folds everybody's announced intervals, in rank order. `runs` may hold those of other partitions.
void fold_interval(AgreedState& state, const RowInterval& interval, std::span<const SkippedRange> runs);

/// Over parameters, optimizer, buffers, clocks, partitions, and what controllers remember, if anything. Not
/// over the lineage: a state that a later view adopts is the same state.
Result<Digest> digest_of(const AgreedState& state, devices::Device& device);

}  // namespace rivulet::runtime
