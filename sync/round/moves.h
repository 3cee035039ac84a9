#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/row.h"
#include "sync/collective/aggregation.h"
#include "sync/policy/plan.h"

namespace rivulet::sync {

struct ReceivedRow;

/// Rows that go to another device before it computes: per move one checked header, then exactly that many
/// bytes. A move may carry fewer rows than planned (the owner did not have them). Private to SyncSession;
/// owner: the train thread.
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
  [[nodiscard]] const Error& error() const { return error_; }
  void clear();

 private:
  struct PeerTransfer;  // one move that starts or ends here
  Progress fail(Error error);
  bool open_payload(PeerTransfer& transfer);
  bool unpack(const PeerTransfer& transfer);
  [[nodiscard]] std::size_t row_bytes() const;

  // constant
  Transport& transport_;
  const ViewSpec& view_;
  const RowShape shape_;
  const std::size_t rows_max_;
  // train thread
  std::uint64_t round_ = 0;
  std::vector<PeerTransfer> transfers_;
  std::vector<ReceivedRow> received_;
  std::vector<std::vector<float>> received_values_;
  Error error_;
};

}  // namespace rivulet::sync
