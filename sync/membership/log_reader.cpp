#include "sync/membership/log_reader.h"

#include <algorithm>
#include <utility>

#include "sync/membership/snapshot.h"

namespace rivulet::sync::membership {

std::optional<ControlRecord> LogReader::take(const LogEntry& entry) {
  if (first_offset_ < 0) first_offset_ = entry.offset;
  if (understands()) return apply(fold_, entry, job_);
  Ignored reason{};
  auto record = decode(entry.bytes, job_, &reason);
  const auto* snap = record ? std::get_if<Snap>(&record.value()) : nullptr;
  const auto refused = snap != nullptr ? begin_at(*snap, entry) : std::nullopt;
  if (!record) fold_.ignored.add(reason);
  if (refused) fold_.ignored.add(*refused);
  fold_.next_offset = entry.offset + 1;
  return record ? std::optional(std::move(record).value()) : std::nullopt;
}

/// The SNAP must cover exactly the records before it: a record in between would be lost.
std::optional<Ignored> LogReader::begin_at(const Snap& snap, const LogEntry& entry) {
  if (snap.covers != entry.offset && snap.covers != fold_.next_offset) return Ignored::refused;
  auto fold = fold_of(snap);
  if (!fold || fold->next_offset != snap.covers) return Ignored::impossible;
  const auto writer = fold->devices.find(snap.device);
  if (writer == fold->devices.end() || writer->second.session != snap.session) return Ignored::stale_session;
  fold->ignored = fold_.ignored;
  fold->rules = fold_.rules;
  fold_ = std::move(*fold);
  fold_.snapped_at = entry.offset;
  fold_.time_ms = std::max(fold_.time_ms, entry.append_time_ms);
  fold_.devices.at(snap.device).last_seen = entry.offset;
  based_ = true;
  return std::nullopt;
}

}  // namespace rivulet::sync::membership
