#pragma once
#include <cstddef>
#include <ranges>
#include <span>

#include "buffer/ledger.h"
#include "core/result.h"
#include "runtime/state/agreed_state.h"
#include "runtime/state/state_handle.h"
#include "sync/message/facts.h"
#include "sync/round/round.h"
#include "sync/transport/transport.h"

/// The rows that the devices of a view announce in the facts of a round. Pure functions of the facts table:
/// every device gets the same result.
namespace rivulet::runtime {

/// The intervals and skipped ranges that one rank announced. Refers to the table, which must outlive it.
class Announced {
 public:
  Announced(const sync::FactsTable& table, std::size_t rank)
      : first_(table.facts[rank].interval),
        more_(table.sections[rank].more_intervals),
        runs_(table.sections[rank].runs) {}
  /// Returns the non-empty intervals in order. Valid while this object exists.
  [[nodiscard]] auto intervals() const {
    return std::views::iota(std::size_t{0}, 1 + more_.size()) |
           std::views::transform(
               [this](std::size_t i) -> const RowInterval& { return i == 0 ? first_ : more_[i - 1]; }) |
           std::views::filter([](const RowInterval& interval) { return !interval.empty(); });
  }
  [[nodiscard]] std::span<const SkippedRange> runs() const { return runs_; }
  /// Returns a copy that owns its intervals and ranges.
  [[nodiscard]] buffer::Account account() const;

 private:
  const RowInterval& first_;
  std::span<const RowInterval> more_;
  std::span<const SkippedRange> runs_;
};

/// Checks the announced intervals before they move offsets of the agreed state. Each interval must begin at
/// the next row of its partition, account for every offset, match the announced skipped ranges, and belong to
/// a partition that no other device announces. `own`: this device's partitions, sorted. `topics`: names for
/// messages. Errors: protocol (names the device and the partition).
Status check_announced(const sync::FactsTable& table, const sync::ViewSpec& view, const AgreedState& state,
                       std::span<const PartitionId> own, std::span<const std::string> topics);

/// Gives the same result. Devices that share a state compute the common part only once.
Status check_announced(const sync::Round& round, const sync::ViewSpec& view, const StateHandle& state,
                       std::span<const PartitionId> own, std::span<const std::string> topics);

/// True if no device has rows to train, but at least one has dropped rows or passed holes. Such a round
/// advances only the offsets; otherwise the offsets of a partition without trained rows would never be
/// committed.
bool only_offsets_move(const sync::FactsTable& table);

}  // namespace rivulet::runtime
