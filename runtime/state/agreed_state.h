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

/// The group's state, equal on every device after every round: model, clocks, and the next row of every
/// partition of the job. Parameters and offsets change together, so they always match each other.
struct AgreedState {
  devices::ModelState model;
  Stamp stamp;
  std::uint64_t rows = 0;  ///< rows trained by the group
  std::map<PartitionId, PartitionProgress> partitions;
  std::vector<sync::policy::ControllerMemory> controllers = {};  ///< after the last step

  /// Copies into the existing arrays. Both states need equal layouts and host-readable memory.
  void copy_from(const AgreedState& other);
  /// Compares values bit for bit. Needs host-readable memory.
  bool operator==(const AgreedState& other) const;
};

/// Adds an announced interval to its partition's ledger. Every device folds all intervals, in rank order.
/// Ignores skipped ranges in `runs` that belong to other partitions.
void fold_interval(AgreedState& state, const RowInterval& interval, std::span<const SkippedRange> runs);

/// Hashes parameters, optimizer arrays, buffers, clocks, partitions and memory of controllers. Omits the
/// lineage: a state keeps its digest when a later view adopts it.
Result<Digest> digest_of(const AgreedState& state, devices::Device& device);

}  // namespace rivulet::runtime
