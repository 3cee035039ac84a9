#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "buffer/ledger.h"
#include "devices/columns.h"
#include "runtime/train/own_steps.h"

namespace rivulet::runtime {

/// Where a private copy of the model stands: what a roll-back needs.
struct ModelPoint {
  std::vector<std::vector<std::byte>> arrays;  ///< of its optimizer
  std::uint64_t steps = 0;                     ///< that these come from
  devices::Statistics known = {};              ///< what it saw columns and classes by, and its usual norm
  std::vector<std::byte> parameters = {};      ///< [P]; empty: those of the agreed model
  std::vector<std::byte> buffers = {};         ///< [B]; same
};

/// What a device has done by itself from one synchronization to the next. A value.
struct LocalInterval {
  ModelPoint start;          ///< of the private copy, before the first step
  OwnSteps steps;            ///< what is contributed as one delta
  buffer::Account rows;      ///< used, and not part of the agreed state yet: announced with the interval
  bool contributed = false;  ///< its delta may be in a sum
  /// Of the rows that were trained: counted when the group has made them part of its state.
  struct Trained {
    std::uint64_t record_bytes = 0;
    std::uint64_t batches = 0;
  };
  Trained trained;
};

/// The interval that is being made, and the one that the group is agreeing on, if steps go on meanwhile.
/// Owner: the train thread. LocalModel writes start, steps and contributed, RoundRows rows, RoundReport
/// trained; nobody else keeps any of it.
///
///   depart: current becomes in_flight | commit: in_flight is part of the agreed state
///                                     | roll_back: both are made again
struct LocalIntervals {
  LocalInterval current;
  std::optional<LocalInterval> in_flight;

  [[nodiscard]] LocalInterval& oldest() noexcept { return in_flight ? *in_flight : current; }
  [[nodiscard]] const LocalInterval& oldest() const noexcept { return in_flight ? *in_flight : current; }

  /// `start`: of the steps from here on.
  void depart(ModelPoint start, TimePoint now) {
    in_flight = std::move(current);
    current = {};
    current.start = std::move(start);
    current.steps.follow(in_flight->steps, now);
  }
  /// Steps that were made until now were made meanwhile.
  void commit() noexcept {
    in_flight.reset();
    current.steps.agreed();
  }
  /// The copy stands again where the oldest interval started.
  void roll_back(TimePoint now) {
    if (in_flight) current.start = std::move(in_flight->start);
    in_flight.reset();
    restart(now);
  }
  /// No step of the current interval has been made.
  void restart(TimePoint now) {
    current.steps.begin(now);
    current.contributed = false;
  }
};

}  // namespace rivulet::runtime
