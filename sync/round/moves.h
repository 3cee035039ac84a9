#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/row.h"
#include "sync/collective/aggregation.h"
#include "sync/policy/plan.h"
#include "sync/round/parcels.h"

namespace rivulet::sync {

struct ReceivedRow;

/// Rows that go to another device before it computes: a parcel per move, which may carry fewer rows than
/// planned (the owner did not have them). Private to SyncSession; owner: the train thread.
class MovesExchange {
 public:
  MovesExchange(Transport& transport, const ViewSpec& view, const RowShape& shape, std::size_t rows_max);
  ~MovesExchange();
  MovesExchange(const MovesExchange&) = delete;
  MovesExchange& operator=(const MovesExchange&) = delete;

  /// `outgoing` are the rows of my moves, in the order of `moves`; the last move gets what is left.
  void begin(std::uint64_t round, std::span<const policy::Move> moves, const BatchView& outgoing);
  Progress poll();
  [[nodiscard]] std::span<const ReceivedRow> received_rows() const;
  [[nodiscard]] const Error& error() const { return parcels_.error(); }
  void clear();

 private:
  void unpack(std::uint32_t peer, std::span<const std::byte> bytes);
  [[nodiscard]] std::vector<std::byte> pack(const BatchView& outgoing, std::size_t first,
                                            std::size_t rows) const;
  [[nodiscard]] std::size_t row_bytes() const;

  // constant
  Transport& transport_;
  const RowShape shape_;
  const std::size_t rows_max_;
  // train thread
  ParcelExchange parcels_;
  bool unpacked_ = false;
  std::vector<ReceivedRow> received_;
  std::vector<std::vector<float>> received_values_;
};

}  // namespace rivulet::sync
