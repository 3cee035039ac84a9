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

/// What the ranks of a view have contributed in one exchange: one object for all of them, unchanged once
/// it is handed out.
struct Gathered {
  explicit Gathered(std::shared_ptr<ShareCheck> check) : work(std::move(check)) {}
  std::vector<std::vector<std::byte>> of;  ///< by rank; empty: it contributed nothing
  SharedWork work;                         ///< what follows from it
};

/// For ranks that share memory: all contributions of an exchange take one object instead of a message from
/// each to each. Times, counters, deadlines and failures are those that the messages would have. Owner: the
/// train thread.
class Gathering {
 public:
  struct Telling {
    Lane lane = Lane::facts;
    std::size_t header_bytes = 0;  ///< that would travel ahead of the bytes, in a message of their own
    std::vector<std::byte> bytes;
    std::uint32_t tellers = 0;  ///< ranks that contribute; all ranks pass the same number
    bool listens = false;       ///< this rank is none of them
    bool patient = false;       ///< waiting for the others is not a lack of progress
  };
  virtual ~Gathering() = default;
  /// Enters this rank's next exchange on the lane. The ticket is for Transport::poll(): done when everything
  /// is here and the own bytes have left.
  virtual Ticket tell(Telling telling) = 0;
  /// Of a ticket that is done; once.
  virtual std::shared_ptr<Gathered> take(Ticket ticket) = 0;
  /// Something has come for this rank's next exchange on the lane. If not, its Wake is notified when it has.
  [[nodiscard]] virtual bool anything_told(Lane lane) = 0;
  /// What a peer has told in that exchange, if it is here by now; else nothing. Valid until tell().
  [[nodiscard]] virtual std::span<const std::byte> heard(Lane lane, std::uint32_t rank) = 0;
  /// What all ranks of this view would make alike before they have contributed anything.
  [[nodiscard]] virtual SharedWork& work() = 0;
};

}  // namespace rivulet::sync
