#include "runtime/agreed_state.h"

#include <array>
#include <cstring>

#include "buffer/ledger.h"
#include "core/check.h"

namespace rivulet::runtime {
namespace {

/// Many small values into one hash: joined first, because each call of the hash costs more than its eight
/// bytes. The digest is that of the values in a row. Field by field: a cursor has padding, and padding has no
/// agreed value.
class ValueHasher {
 public:
  explicit ValueHasher(Hasher& hasher) : hasher_(hasher) {}
  template <class T>
  void add(const T& value) {
    if (used_ + sizeof value > joined_.size()) flush();
    std::memcpy(joined_.data() + used_, &value, sizeof value);
    used_ += sizeof value;
  }
  void add(const RowCursor& cursor) {
    add(cursor.offset);
    add(cursor.row);
  }
  void flush() {
    hasher_.add(std::span(joined_).first(used_));
    used_ = 0;
  }

 private:
  Hasher& hasher_;
  std::array<std::byte, 4096> joined_;
  std::size_t used_ = 0;
};

void add_progress(ValueHasher& values, const PartitionProgress& progress) {
  values.add(progress.start);
  values.add(progress.next);
  values.add(progress.trained);
  values.add(progress.shared);
  values.add(progress.holes);
  for (const std::uint64_t rows : progress.dropped) values.add(rows);
  for (const PassedRun& run : progress.runs) {
    values.add(run.from);
    values.add(run.to);
    values.add(run.rows);
    values.add(run.fate);
  }
}

}  // namespace

void AgreedState::copy_from(const AgreedState& other) {
  model.copy_from(other.model);
  stamp = other.stamp;
  rows = other.rows;
  partitions = other.partitions;
}

void fold_interval(AgreedState& state, const RowInterval& interval, std::span<const PassedRun> runs) {
  RIVULET_CHECK(!(interval.next < interval.first), "an interval ends before it begins");
  const auto [at, first] = state.partitions.try_emplace(interval.partition);
  PartitionProgress& progress = at->second;
  if (first) progress.start = interval.first;
  RIVULET_CHECK(!(interval.next < progress.next), "the next row of a partition would go backwards");
  progress.next = interval.next;
  progress.trained += interval.rows_trained;
  progress.shared += interval.rows_shared;
  progress.holes += interval.holes;
  for (const PassedRun& run : runs) {
    if (run.partition != interval.partition) continue;
    if (run.fate < drop_reasons) progress.dropped.at(run.fate) += run.rows;
    buffer::add_run(progress.runs, run, passed_runs_max);
  }
  RIVULET_CHECK(progress.adds_up(), "the books of a partition do not add up");
}

Result<Digest> digest_of(const AgreedState& state, devices::Device& device) {
  Hasher hasher;
  if (Status hashed = state.model.hash_into(hasher, device); !hashed) return hashed.error();
  ValueHasher values(hasher);
  values.add(state.stamp.step);
  values.add(state.rows);
  values.add(static_cast<std::uint64_t>(state.partitions.size()));
  for (const auto& [id, progress] : state.partitions) {
    values.add(id.topic);
    values.add(id.partition);
    add_progress(values, progress);
  }
  values.flush();
  return hasher.finish();
}

}  // namespace rivulet::runtime
