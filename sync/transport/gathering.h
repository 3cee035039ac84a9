#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/shared_work.h"
#include "sync/transport/transport.h"

namespace rivulet::sync {

/// The contributions of all ranks of a view in one exchange. One object for all ranks, unchanged once it
/// is handed out.
struct Gathered {
  explicit Gathered(std::shared_ptr<ShareCheck> check) : work(std::move(check)) {}
  std::vector<std::vector<std::byte>> of;  ///< by rank; empty if it contributed nothing
  SharedWork work;                         ///< results derived from the contributions
};

/// For ranks that share memory: one object per exchange replaces the messages from each rank to each. Times,
/// counters, deadlines and failures are those of the messages. Owner: the train thread.
class Gathering {
 public:
  struct Contribution {
    Lane lane = Lane::facts;
    std::size_t header_bytes = 0;  ///< bytes of the header, which without gathering is a separate message
    std::vector<std::byte> bytes;
    std::uint32_t contributors = 0;  ///< number of contributing ranks, the same on all ranks
    bool receives_only = false;      ///< this rank contributes nothing
    bool patient = false;            ///< waiting for peers does not count for the progress deadline
  };
  virtual ~Gathering() = default;
  /// Enters this rank's next exchange on the lane. Transport::poll() of the ticket returns done when all
  /// contributions have arrived and this rank's bytes have left.
  virtual Ticket contribute(Contribution contribution) = 0;
  /// Returns the contributions of a finished ticket. Call once.
  virtual std::shared_ptr<Gathered> take(Ticket ticket) = 0;
  /// True if a contribution to this rank's next exchange on the lane has arrived. Else its Wake is notified
  /// when one does.
  [[nodiscard]] virtual bool anything_contributed(Lane lane) = 0;
  /// Returns a peer's contribution to that exchange, empty if it has not arrived. Valid until contribute().
  [[nodiscard]] virtual std::span<const std::byte> received(Lane lane, std::uint32_t rank) = 0;
  /// Work done before any contribution, with results that are the same on all ranks of this view.
  [[nodiscard]] virtual SharedWork& work() = 0;
};

}  // namespace rivulet::sync
