#include "runtime/state/agreed_state.h"

#include <algorithm>

#include "buffer/ledger.h"
#include "core/check.h"
#include "sync/message/field_bytes.h"

namespace rivulet::runtime {
namespace {

// Field by field: RowCursor has padding, whose bytes differ between devices.
void add_cursor(Hasher& hasher, const RowCursor& cursor) {
  hasher.add_value(cursor.offset);
  hasher.add_value(cursor.row);
}

void add_progress(Hasher& hasher, const PartitionProgress& progress) {
  add_cursor(hasher, progress.start);
  add_cursor(hasher, progress.next);
  hasher.add_value(progress.trained);
  hasher.add_value(progress.shared);
  hasher.add_value(progress.holes);
  for (const std::uint64_t rows : progress.dropped) hasher.add_value(rows);
  for (const SkippedRange& run : progress.runs) {
    add_cursor(hasher, run.from);
    add_cursor(hasher, run.to);
    hasher.add_value(run.rows);
    hasher.add_value(run.fate);
  }
}

}  // namespace

void AgreedState::copy_from(const AgreedState& other) {
  model.copy_from(other.model);
  stamp = other.stamp;
  rows = other.rows;
  partitions = other.partitions;
  controllers = other.controllers;
}

bool AgreedState::operator==(const AgreedState& other) const {
  const auto equal = [](const GradientView& a, const GradientView& b) {
    return std::ranges::equal(a.host_bytes(), b.host_bytes());
  };
  const auto mine = model.arrays();
  const auto others = other.model.arrays();
  return stamp == other.stamp && rows == other.rows && partitions == other.partitions &&
         controllers == other.controllers && std::ranges::equal(mine, others, equal) &&
         equal(model.average(), other.model.average()) && model.statistics() == other.model.statistics();
}

void fold_interval(AgreedState& state, const RowInterval& interval, std::span<const SkippedRange> runs) {
  RIVULET_CHECK(!(interval.next < interval.first), "an interval ends before it begins");
  const auto [at, first] = state.partitions.try_emplace(interval.partition);
  PartitionProgress& progress = at->second;
  if (first) progress.start = interval.first;
  RIVULET_CHECK(!(interval.next < progress.next), "the next offset of a partition would decrease");
  progress.next = interval.next;
  progress.trained += interval.rows_trained;
  progress.shared += interval.non_final_rows;
  progress.holes += interval.holes;
  for (const SkippedRange& run : runs) {
    if (run.partition != interval.partition) continue;
    if (run.fate < drop_reasons) progress.dropped.at(run.fate) += run.rows;
    buffer::add_run(progress.runs, run, passed_runs_max);
  }
  RIVULET_CHECK(progress.adds_up(), "the ledger of a partition does not balance");
}

Result<Digest> digest_of(const AgreedState& state, devices::Device& device) {
  Hasher hasher;
  if (Status hashed = state.model.hash_into(hasher, device); !hashed) return hashed.error();
  hasher.add_value(state.stamp.step);
  hasher.add_value(state.rows);
  hasher.add_value(static_cast<std::uint64_t>(state.partitions.size()));
  for (const auto& [id, progress] : state.partitions) {
    hasher.add_value(id.topic);
    hasher.add_value(id.partition);
    add_progress(hasher, progress);
  }
  // Adds nothing where no controller has memory, so that such states keep the digests of older versions.
  for (const auto& memory : state.controllers) hasher.add(sync::bytes_of_fields(memory));
  return hasher.finish();
}

}  // namespace rivulet::runtime
