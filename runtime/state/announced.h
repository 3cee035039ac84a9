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

/// What the devices of a view announce of their rows, read from the facts of a round. Pure over the table:
/// all devices come to the same answer.
namespace rivulet::runtime {

/// All that a rank announced, where it lies in the table: valid as long as that.
class Announced {
 public:
  Announced(const sync::FactsTable& table, std::size_t rank)
      : first_(table.facts[rank].interval),
        more_(table.sections[rank].more_intervals),
        runs_(table.sections[rank].runs) {}
  /// In order, without empty ones; valid as long as this object.
  [[nodiscard]] auto intervals() const {
    return std::views::iota(std::size_t{0}, 1 + more_.size()) |
           std::views::transform(
               [this](std::size_t i) -> const RowInterval& { return i == 0 ? first_ : more_[i - 1]; }) |
           std::views::filter([](const RowInterval& interval) { return !interval.empty(); });
  }
  [[nodiscard]] std::span<const SkippedRange> runs() const { return runs_; }
  /// As a value of its own.
  [[nodiscard]] buffer::Account account() const;

 private:
  const RowInterval& first_;
  std::span<const RowInterval> more_;
  std::span<const SkippedRange> runs_;
};

/// What the others announced is believed only after this: it will move offsets of the agreed state. Each
/// interval must begin where its partition stands, add up, be explained by the announced runs, and be of a
/// partition that nobody else announces. `own`: of this device, ordered. `topics`: names for people. Errors:
/// protocol (names the device and the partition).
Status check_announced(const sync::FactsTable& table, const sync::ViewSpec& view, const AgreedState& state,
                       std::span<const PartitionId> own, std::span<const std::string> topics);

/// The same, where the part that is alike for all who hold the same state is made once.
Status check_announced(const sync::Round& round, const sync::ViewSpec& view, const StateHandle& state,
                       std::span<const PartitionId> own, std::span<const std::string> topics);

/// Nobody has rows to train, but somebody has dropped some or passed over holes: the offsets may advance, or
/// a partition of nothing else would never be committed.
bool only_offsets_move(const sync::FactsTable& table);

}  // namespace rivulet::runtime
