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

/// Injected rows: copies of rows that devices exchange, so that each trains on samples of the other streams.
/// Their owners train on them and announce them. Receivers add them to their batches, but do not count them:
///
///   offer (own rows, as they are trained) -> give (with facts)       receive (of peers) -> lend (to steps)
///
/// Owner: the train thread. Maximum memory: rows_held() own rows, and peers_held times as many received rows.
class InjectedRows {
 public:
  /// `classes`: number of labels; 0 for numeric targets.
  InjectedRows(sync::RowFormat format, std::size_t classes, std::uint64_t seed);
  /// Returns the number of own rows in the sample; smaller if rows are large.
  static std::size_t rows_held(const RowShape& shape) noexcept;
  static constexpr std::size_t peers_held = 4;

  /// Call at the start of a view. Discards received rows, since their senders may not be members.
  void begin();
  /// Call when the first `own` rows of a batch are trained. Samples uniformly from all rows since draw().
  void offer(const BatchView& batch, std::size_t own);
  /// Encodes `rows` sampled rows for each rank but `me`, or as many as fit into a message. Ranks get
  /// different rows if there are enough. Empty if the sample is empty.
  std::vector<std::vector<std::byte>> draw(std::size_t rows, std::uint32_t world, std::uint32_t me);
  /// Replaces the rows received before with those of all peers. Keeps the old ones if no peer sent any.
  /// Errors: protocol (names the peer).
  Status receive(std::span<const sync::ParcelExchange::Received> parcels, const sync::ViewSpec& view);
  /// Adds on average `for_each_own` injected rows per own row to the batch, drawn from all peers in rotation.
  /// Returns the number of added rows.
  std::size_t inject(buffer::Batch& batch, double for_each_own);

 private:
  void shuffle();
  [[nodiscard]] bool are_targets(std::span<const float> targets) const;
  void inject_next(buffer::Batch& batch);
  void move_on();

  const sync::RowFormat format_;
  const RowShape& shape_;
  const std::size_t classes_;
  Rng rng_;
  std::vector<float> features_;  ///< [held, columns]
  std::vector<float> targets_;
  std::size_t held_ = 0;
  std::uint64_t offered_ = 0;             ///< rows offered since draw()
  std::vector<sync::RowBlock> received_;  ///< received rows of each peer that sent any
  struct Place {
    std::size_t peer = 0;
    std::size_t row = 0;
  };
  Place next_;
  double owed_ = 0;  ///< injected rows that earlier batches had no space for
};

}  // namespace rivulet::runtime
