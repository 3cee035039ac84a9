#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "buffer/ledger.h"
#include "devices/columns.h"
#include "runtime/train/local_steps.h"

namespace rivulet::runtime {

/// A saved state of the private model that a rollback can restore.
struct ModelPoint {
  std::vector<std::vector<std::byte>> arrays;  ///< arrays of the private optimizer
  std::uint64_t steps = 0;                     ///< number of steps behind these arrays
  devices::Statistics known = {};              ///< normalization, class counts and usual norm
  std::vector<std::byte> parameters = {};      ///< [P]; empty if equal to those of the agreed model
  std::vector<std::byte> buffers = {};         ///< [B]; likewise
};

/// The local work of a device between two synchronizations. Plain values.
struct LocalInterval {
  ModelPoint start;      ///< the private copy before the first step
  LocalSteps steps;      ///< contributed as one delta
  buffer::Account rows;  ///< used rows that are not part of the agreed state yet: announced with the interval
  bool contributed = false;  ///< its delta may be in a sum
  /// Trained rows; counted once they are part of the agreed state.
  struct Trained {
    std::uint64_t record_bytes = 0;
    std::uint64_t batches = 0;
  };
  Trained trained;
};

/// The current interval, and the one being synchronized if local steps continue during the synchronization.
/// This is the only copy of this data: LocalModel writes start, steps and contributed, RoundRows writes rows,
/// and RoundReport writes trained. Owner: the train thread.
///
///   depart: current becomes in_flight | commit: in_flight is part of the agreed state
///                                     | roll_back: both are repeated
struct LocalIntervals {
  LocalInterval current;
  std::optional<LocalInterval> in_flight;

  [[nodiscard]] LocalInterval& oldest() noexcept { return in_flight ? *in_flight : current; }
  [[nodiscard]] const LocalInterval& oldest() const noexcept { return in_flight ? *in_flight : current; }

  /// `start`: start of the steps that follow.
  void depart(ModelPoint start, TimePoint now) {
    in_flight = std::move(current);
    current = {};
    current.start = std::move(start);
    current.steps.follow(in_flight->steps, now);
  }
  /// Ends the synchronization: steps made so far count as steps made during it.
  void commit() noexcept {
    in_flight.reset();
    current.steps.agreed();
  }
  /// Makes the start of the oldest interval the current start, and discards all later steps.
  void roll_back(TimePoint now) {
    if (in_flight) current.start = std::move(in_flight->start);
    in_flight.reset();
    restart(now);
  }
  /// Discards the steps of the current interval.
  void restart(TimePoint now) {
    current.steps.begin(now);
    current.contributed = false;
  }
};

}  // namespace rivulet::runtime
