#pragma once
#include <cstdint>
#include <vector>

#include "buffer/batch.h"
#include "core/result.h"
#include "core/rng.h"
#include "core/row.h"
#include "sync/coding/rows.h"
#include "sync/round/session.h"
#include "sync/transport/transport.h"

namespace rivulet::runtime {

/// Copies of rows that devices send each other, so that each sees a little of what only the others' streams
/// have. Their owners train and announce them; elsewhere they are computed on besides and counted nowhere:
///
///   offer (own rows, as they are trained) -> give (with facts)       receive (of peers) -> lend (to steps)
///
/// Owner: the train thread. Memory: at most rows_held() rows of its own, and peers_held times as many of what
/// peers have sent last.
class RowCopies {
 public:
  /// `classes`: labels that there are; 0: targets are any numbers.
  RowCopies(sync::RowFormat format, std::size_t classes, std::uint64_t seed);
  /// Of rows that are drawn from: few of large ones.
  static std::size_t rows_held(const RowShape& shape) noexcept;
  static constexpr std::size_t peers_held = 4;

  /// A view begins: what was received in another one belongs to other members.
  void begin();
  /// The first `own` rows of a batch are trained. Each row since give() is as likely as any other to be
  /// given.
  void offer(const BatchView& batch, std::size_t own);
  /// For each rank but `me` copies of N, or of as many as fit into a message; of others for each, if
  /// there are enough. Nothing: there are none.
  std::vector<std::vector<std::byte>> give(std::size_t rows, std::uint32_t world, std::uint32_t me);
  /// Those of all peers, in place of the ones before, if there are any. Errors: protocol (names the peer).
  Status receive(std::span<const sync::ParcelExchange::Received> parcels, const sync::ViewSpec& view);
  /// Adds N to the batch for each of its own rows, on average, if there are any: the next of those that
  /// came, from all peers in turn; after the last the first. How many.
  std::size_t lend(buffer::Batch& batch, double for_each_own);

 private:
  void shuffle();
  [[nodiscard]] bool are_targets(std::span<const float> targets) const;
  void lend_next(buffer::Batch& batch);
  void move_on();

  const sync::RowFormat format_;
  const RowShape& shape_;
  const std::size_t classes_;
  Rng rng_;
  std::vector<float> features_;  ///< [held, columns]
  std::vector<float> targets_;
  std::size_t held_ = 0;
  std::uint64_t offered_ = 0;             ///< since give()
  std::vector<sync::CopiedRows> guests_;  ///< of each peer that has sent some
  struct Place {
    std::size_t peer = 0;
    std::size_t row = 0;
  };
  Place next_;
  double owed_ = 0;  ///< guests that steps before were too small for
};

}  // namespace rivulet::runtime
