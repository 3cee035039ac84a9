#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/stamp.h"
#include "core/time.h"
#include "runtime/state/agreed_state.h"
#include "tests/support/sim_rows.h"

/// Invariants of a group under any faults. Each is a small function that returns an error as text, or
/// nothing: checkers C1 to C9 (design: promises, section 7).
namespace rivulet::testing {

using Finding = std::string;  ///< empty: no error

/// C1: the ledger of every partition balances and is explained.
Finding check_ledger(const runtime::AgreedState& state);

/// Rows deleted before they were read, by partition.
using MissingRows = std::map<std::int32_t, RowSums>;
/// C2: every trainable row below the partition's next offset, except missing ones, is in the model once, and
/// no other row is.
Finding check_rows(const runtime::AgreedState& state, RowTable& rows, const MissingRows& missing = {});

/// All states that existed, by stamp, and their predecessors.
class StateHistory {
 public:
  static constexpr int none = -1;
  struct State {
    int parent = none;
    std::uint64_t step = 0;
    std::string digest;
  };
  [[nodiscard]] int find(const Stamp& stamp) const;
  [[nodiscard]] const State& at(int state) const { return states_[static_cast<std::size_t>(state)]; }
  /// C3: equal stamps have equal digests and equal histories.
  Finding add(const Stamp& stamp, State state);
  /// Adds another stamp for the same state.
  void add_name(const Stamp& stamp, int state) { names_[stamp] = state; }
  /// C4: `earlier` is in the history of `later`.
  [[nodiscard]] bool extends(int later, int earlier) const;

 private:
  std::vector<State> states_;
  std::map<Stamp, int> names_;
};

/// C5: an awaited event occurred in time.
Finding check_wait(const std::string& what, Duration waited, Duration bound);

/// C6: resources of a process.
struct ProcessUse {
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  std::size_t resident_bytes = 0;
};
ProcessUse use_of_this_process();
/// No increase, except `bytes_more` of memory.
Finding check_use(const ProcessUse& before, const ProcessUse& after, std::size_t bytes_more);

/// C6: a simulated process that ended regularly has closed its files.
Finding check_descriptors(const std::string& device, std::size_t open);

/// C7: no bytes of a row in data that left a device for `where`.
Finding check_private(std::span<const std::byte> bytes, const char* where);

/// C8: devices that folded the same prefix of the log have equal results.
class FoldTable {
 public:
  Finding add(std::int64_t next_offset, const std::string& hash);
  /// Number of comparisons with an earlier fold of the same prefix.
  [[nodiscard]] std::uint64_t compared() const noexcept { return compared_; }

 private:
  std::map<std::int64_t, std::string> hashes_;
  std::uint64_t compared_ = 0;
};

/// C9: the ratio of a loss to that without faults is within a factor, in both directions: too fast learning
/// means that rows were trained twice.
Finding check_loss(double loss, double without_faults, double factor);

}  // namespace rivulet::testing
