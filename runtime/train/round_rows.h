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
#include "runtime/train/local_interval.h"
#include "runtime/train/row_copies.h"
#include "sync/message/facts.h"

namespace rivulet::runtime {

/// The rows of this device in a round: its partitions, where they stand, its batch, and what it announces.
/// Owner: the train thread.
///
///   fill -> announce -> fold (the round became part of the state) | keep (it did not, but used them)
///                    -> settle (slots are free)  | put_back (the round failed)
class RoundRows {
 public:
  struct Parts {
    buffer::RowBuffer& rows;
    buffer::Ledger& ledger;
    CommittableOffsets& commits;
    AssignmentSlot& assignments;
    LocalIntervals& intervals;
    Wake& ingest;  ///< told when slots are free again
  };
  /// `claimed`: partitions of this device until a view gives it others. Errors: unavailable (memory).
  static Result<std::unique_ptr<RoundRows>> create(std::size_t rows_max, devices::Device& device,
                                                   std::vector<PartitionId> claimed, const Parts& parts);

  /// The partitions of this device, ordered.
  [[nodiscard]] std::span<const PartitionId> partitions() const noexcept { return partitions_; }
  /// They are these, as the view says. True: others than before; stand_at() reads them from there.
  bool own(std::vector<PartitionId> partitions);

  [[nodiscard]] const buffer::Batch& batch() const noexcept { return batch_; }
  [[nodiscard]] std::size_t waiting() const { return parts_.rows.waiting(); }
  /// Most rows of one batch.
  [[nodiscard]] std::size_t rows_max() const { return std::min(batch_.rows_max(), parts_.rows.capacity()); }
  /// It does not have the rows that it was assigned.
  [[nodiscard]] bool incomplete() const noexcept { return incomplete_; }

  /// Takes rows until the batch has `assigned`; `whole`: all that are missing, or none. True: it has others
  /// than before.
  bool fill(std::size_t assigned, bool whole);
  /// Copies of peers' rows join the batch, to be computed on. How many.
  std::size_t lend(RowCopies& copies, double for_each_own) { return copies.lend(batch_, for_each_own); }

  /// What this round's rows amount to, with all that was passed over around them, and what is pending.
  /// Errors: the ledger's.
  Status announce(bool finite);
  /// Of what was used, and no aggregating round has announced, no row was trained after all.
  void drop_pending() { buffer::drop_trained(pending()); }
  /// Of what was announced: the first interval, and all else.
  [[nodiscard]] RowInterval first_interval() const;
  [[nodiscard]] sync::FactsSection section() const;
  /// The oldest interval is part of the agreed state, with what was announced of it. `covered`: nothing is
  /// saved, so that it is as safe as it will ever be.
  void fold(bool covered);
  /// The round used what was announced but did not aggregate: it is announced with the next one that does.
  void keep();
  /// Nothing of it will ever be folded (a dry run).
  void forget_pending() { pending() = {}; }
  /// The batch is done with; how many rows of its own it had.
  std::size_t settle();
  void put_back() { batch_.put_back(parts_.rows); }

  /// The state is another one, or the first: rows that it has used are discarded, the others kept; what lies
  /// between is read again. The first time, the reader begins there.
  void stand_at(const AgreedState& state);
  /// The state that is given up, before: partitions that the next one may not know are read from where the
  /// group once began.
  void leave(const AgreedState& state);

 private:
  RoundRows(std::unique_ptr<devices::Memory> memory, std::size_t rows_max, std::vector<PartitionId> claimed,
            const Parts& parts);
  [[nodiscard]] bool owns(const PartitionId& id) const { return std::ranges::binary_search(partitions_, id); }
  void assign(const buffer::Cursors& from);
  /// Of rounds that did not aggregate: announced with the next one that does.
  [[nodiscard]] buffer::Account& pending() noexcept { return parts_.intervals.current.rows; }
  void move_next_offsets();
  [[nodiscard]] bool keeps_all_behind(const buffer::Cursors& from);

  const Parts parts_;
  const std::unique_ptr<devices::Memory> memory_;
  buffer::Batch batch_;
  bool incomplete_ = false;
  std::vector<PartitionId> partitions_;
  bool assigned_ = false;         ///< the reader was told of these partitions
  buffer::Cursors next_offsets_;  ///< of each own partition: what is below was used, also what is pending
  std::uint32_t generation_ = 0;  ///< of the rows that count
  buffer::Account announced_;     ///< in this round's facts: what is pending, and the batch's
};

}  // namespace rivulet::runtime
