#include "runtime/train/round_rows.h"

#include <algorithm>
#include <map>
#include <optional>

namespace rivulet::runtime {
namespace {

std::size_t numbers_of(const RowShape& shape, std::size_t rows) {
  return rows * (shape.columns() + shape.targets);
}

buffer::Batch batch_over(const devices::Memory& memory, const RowShape& shape, std::size_t rows_max) {
  const std::span<float> all = memory.view(Scalar::f32, numbers_of(shape, rows_max)).as<float>();
  return {all.first(rows_max * shape.columns()), all.subspan(rows_max * shape.columns()), shape, rows_max};
}

}  // namespace

RoundRows::RoundRows(std::unique_ptr<devices::Memory> memory, std::size_t rows_max,
                     std::vector<PartitionId> claimed, const Parts& parts)
    : parts_(parts),
      memory_(std::move(memory)),
      batch_(batch_over(*memory_, parts.rows.shape(), rows_max)),
      partitions_(std::move(claimed)) {
  std::ranges::sort(partitions_);
}

Result<std::unique_ptr<RoundRows>> RoundRows::create(std::size_t rows_max, devices::Device& device,
                                                     std::vector<PartitionId> claimed, const Parts& parts) {
  auto memory = device.allocate_shared(numbers_of(parts.rows.shape(), rows_max) * sizeof(float));
  if (!memory) return memory.error();
  return std::unique_ptr<RoundRows>(
      new RoundRows(std::move(memory).value(), rows_max, std::move(claimed), parts));
}

bool RoundRows::own(std::vector<PartitionId> partitions) {
  std::ranges::sort(partitions);
  if (partitions == partitions_) return false;
  partitions_ = std::move(partitions);
  assigned_ = false;
  return true;
}

bool RoundRows::fill(std::size_t assigned, bool whole) {
  assigned = std::min(assigned, batch_.rows_max());
  const std::size_t held = batch_.own_rows();
  const bool enough = held + parts_.rows.waiting() >= assigned;
  incomplete_ = !enough;
  if (held >= assigned || (!enough && whole)) return false;
  const bool more = batch_.fill(parts_.rows, assigned - held) > 0;
  incomplete_ = batch_.own_rows() < assigned;  // some of the waiting rows may have been discarded
  return more;
}

Status RoundRows::announce(bool finite) {
  auto account = parts_.ledger.account(batch_.own_tags(), next_offsets_, generation_);
  if (!account) return account.error();
  if (!finite) buffer::drop_trained(account.value());
  announced_ = pending();
  return buffer::append(announced_, account.value());
}

RowInterval RoundRows::first_interval() const {
  return announced_.intervals.empty() ? RowInterval{} : announced_.intervals.front();
}

sync::FactsSection RoundRows::section() const {
  sync::FactsSection section;
  const auto& all = announced_.intervals;
  if (all.size() > 1) section.more_intervals.assign(all.begin() + 1, all.end());
  section.runs = announced_.runs;
  return section;
}

void RoundRows::fold(bool covered) {
  const bool in_flight = parts_.intervals.in_flight.has_value();
  const buffer::Account& folded = in_flight ? parts_.intervals.in_flight->rows : announced_;
  if (covered)
    for (const RowInterval& rows : folded.intervals) parts_.commits.covered(rows.partition, rows.next);
  if (in_flight) return;  // the offsets moved when the interval departed
  pending() = {};
  move_next_offsets();
}

void RoundRows::keep() {
  pending() = announced_;
  move_next_offsets();
}

void RoundRows::move_next_offsets() {
  for (const RowInterval& interval : announced_.intervals) next_offsets_[interval.partition] = interval.next;
  parts_.ledger.prune(next_offsets_);
}

std::size_t RoundRows::release() {
  const std::size_t own = batch_.own_rows();
  batch_.release(parts_.rows);
  if (own > 0 && parts_.rows.is_worth_filling()) parts_.ingest.notify();
  return own;
}

void RoundRows::leave(const AgreedState& state) {
  for (const auto& [partition, progress] : state.partitions)
    if (owns(partition)) parts_.ledger.began(partition, progress.start);
}

void RoundRows::start_at(const AgreedState& state) {
  pending() = {};
  next_offsets_.clear();
  for (const auto& [partition, progress] : state.partitions)
    if (owns(partition)) next_offsets_[partition] = progress.next;
  buffer::Cursors from = parts_.ledger.begins();
  std::erase_if(from, [&](const auto& began) { return !owns(began.first); });
  for (const auto& [partition, at] : next_offsets_) from[partition] = at;
  if (assigned_ && keeps_all_behind(from)) return parts_.ledger.prune(next_offsets_);
  assign(from);
}

/// Invalidates all rows in flight, of every partition: they belong to an older generation.
void RoundRows::assign(const buffer::Cursors& from) {
  decltype(Assignment::cursors) cursors;
  for (const PartitionId& id : partitions_) {
    const auto at = from.find(id);
    cursors[id] = at != from.end() ? std::optional(at->second) : std::nullopt;
  }
  generation_ = parts_.assignments.publish(std::move(cursors));
  assigned_ = true;
  parts_.rows.forget_before(generation_);
  parts_.ingest.notify();
}

/// Discards waiting rows before `from`. The reader continues after the newest row. Returns true if no row
/// between `from` and the newest is missing.
bool RoundRows::keeps_all_behind(const buffer::Cursors& from) {
  struct Held {
    std::optional<RowCursor> kept;  ///< oldest row that stays
    RowCursor next;                 ///< after the newest
  };
  std::map<PartitionId, Held> held;  // waiting rows, before discarding
  parts_.rows.discard([&](const RowTag& tag) {
    const auto& [partition, at] = tag.position;
    Held& rows = held[partition];
    rows.next = tag.next;
    const auto stands = from.find(partition);
    const bool used = stands != from.end() && at < stands->second;
    if (!used && !rows.kept) rows.kept = at;
    return used;
  });
  return std::all_of(from.begin(), from.end(), [&](const auto& stands) {
    const auto& [partition, at] = stands;
    const auto rows = held.find(partition);
    if (rows == held.end() || parts_.ledger.splits(partition, at)) return false;
    if (rows->second.kept) return parts_.ledger.behind_runs(partition, at) == *rows->second.kept;
    return rows->second.next <= at && at <= parts_.ledger.behind_runs(partition, rows->second.next);
  });
}

}  // namespace rivulet::runtime
