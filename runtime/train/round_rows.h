#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "buffer/batch.h"
#include "buffer/ledger.h"
#include "buffer/row_buffer.h"
#include "core/wake.h"
#include "devices/device.h"
#include "runtime/checkpoint/committable_offsets.h"
#include "runtime/ingest/assignment_slot.h"
#include "runtime/state/agreed_state.h"
#include "runtime/train/injected_rows.h"
#include "runtime/train/local_interval.h"
#include "sync/message/facts.h"

namespace rivulet::runtime {

/// The rows of this device in a round: its partitions and their next offsets, its batch, and its
/// announcement. Owner: the train thread.
///
///   fill -> announce -> fold (the round is part of the state) | keep (it is not, but used the rows)
///                    -> release (slots are free) | put_back (the round failed)
class RoundRows {
 public:
  struct Parts {
    buffer::RowBuffer& rows;
    buffer::Ledger& ledger;
    CommittableOffsets& commits;
    AssignmentSlot& assignments;
    LocalIntervals& intervals;
    Wake& ingest;  ///< notified when slots are free
  };
  /// `claimed`: partitions of this device until a view assigns others. Errors: unavailable (memory).
  static Result<std::unique_ptr<RoundRows>> create(std::size_t rows_max, devices::Device& device,
                                                   std::vector<PartitionId> claimed, const Parts& parts);

  /// The partitions of this device, sorted.
  [[nodiscard]] std::span<const PartitionId> partitions() const noexcept { return partitions_; }
  /// Sets the partitions that the view assigns. Returns true if they have changed; start_at() then reads the
  /// new ones.
  bool own(std::vector<PartitionId> partitions);

  [[nodiscard]] const buffer::Batch& batch() const noexcept { return batch_; }
  [[nodiscard]] std::size_t waiting() const { return parts_.rows.waiting(); }
  /// Maximum number of rows in a batch.
  [[nodiscard]] std::size_t rows_max() const { return std::min(batch_.rows_max(), parts_.rows.capacity()); }
  /// True if the batch has fewer rows than assigned.
  [[nodiscard]] bool incomplete() const noexcept { return incomplete_; }

  /// Adds waiting rows until the batch has `assigned` rows. `whole`: adds all missing rows or none. Returns
  /// true if the batch has changed.
  bool fill(std::size_t assigned, bool whole);
  /// Adds injected rows to the batch, only for computing the gradient. Returns their number.
  std::size_t lend(InjectedRows& injected, double for_each_own) {
    return injected.inject(batch_, for_each_own);
  }

  /// Builds this round's announcement: the batch's rows, the skipped ranges around them, and pending rows.
  /// Errors: the ledger's.
  Status announce(bool finite);
  /// Marks the trained rows among the pending ones as dropped.
  void drop_pending() { buffer::drop_trained(pending()); }
  /// Parts of the announcement: the first interval, and everything else.
  [[nodiscard]] RowInterval first_interval() const;
  [[nodiscard]] sync::FactsSection section() const;
  /// Call when the oldest interval and its announcement are part of the agreed state. `covered`: this device
  /// saves no states, so the offsets can be committed now.
  void fold(bool covered);
  /// Call when the round used the announced rows but did not aggregate: the next aggregating round announces
  /// them again.
  void keep();
  /// Drops the pending rows, which a dry run never folds.
  void forget_pending() { pending() = {}; }
  /// Finishes the batch and frees its slots. Returns the number of own rows in it.
  std::size_t release();
  void put_back() { batch_.put_back(parts_.rows); }

  /// Call after a state was set. Discards rows that the state includes, keeps the others, and reads missing
  /// rows again. The first call starts the reader.
  void start_at(const AgreedState& state);
  /// Call before giving up a state. Partitions that the next state may lack are then read from the offset
  /// where the group began.
  void leave(const AgreedState& state);

 private:
  RoundRows(std::unique_ptr<devices::Memory> memory, std::size_t rows_max, std::vector<PartitionId> claimed,
            const Parts& parts);
  [[nodiscard]] bool owns(const PartitionId& id) const { return std::ranges::binary_search(partitions_, id); }
  void assign(const buffer::Cursors& from);
  /// Rows of rounds that did not aggregate: the next aggregating round announces them.
  [[nodiscard]] buffer::Account& pending() noexcept { return parts_.intervals.current.rows; }
  void move_next_offsets();
  [[nodiscard]] bool keeps_all_behind(const buffer::Cursors& from);

  const Parts parts_;
  const std::unique_ptr<devices::Memory> memory_;
  buffer::Batch batch_;
  bool incomplete_ = false;
  std::vector<PartitionId> partitions_;
  bool assigned_ = false;         ///< these partitions were assigned to the reader
  buffer::Cursors next_offsets_;  ///< next offset of each own partition, after pending rows
  std::uint32_t generation_ = 0;  ///< generation of valid rows
  buffer::Account announced_;     ///< announced in this round's facts: pending rows and the batch's
};

}  // namespace rivulet::runtime
