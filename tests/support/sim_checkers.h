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

/// What must be true of a group whatever happens to it, each a small function that says what is wrong, or
/// nothing: the checkers C1 to C9 (design: promises, section 7).
namespace rivulet::testing {

using Finding = std::string;  ///< empty: nothing

/// C1: the books of every partition add up and are explained.
Finding check_ledger(const runtime::AgreedState& state);

/// Rows that were deleted before anybody read them, by partition.
using MissingRows = std::map<std::int32_t, RowSums>;
/// C2: every trainable row below where its partition stands, but those missing, is in the model once, and no
/// other row is.
Finding check_rows(const runtime::AgreedState& state, RowTable& rows, const MissingRows& missing = {});

/// The states that were ever held, by stamp, and which came out of which.
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
  /// C3: equal stamps, equal digests and equal pasts.
  Finding add(const Stamp& stamp, State state);
  /// The same state under another stamp.
  void add_name(const Stamp& stamp, int state) { names_[stamp] = state; }
  /// C4: `earlier` is how `later` came about.
  [[nodiscard]] bool extends(int later, int earlier) const;

 private:
  std::vector<State> states_;
  std::map<Stamp, int> names_;
};

/// C5: what was waited for came in time.
Finding check_wait(const std::string& what, Duration waited, Duration bound);

/// C6: what a process holds.
struct ProcessUse {
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  std::size_t resident_bytes = 0;
};
ProcessUse use_of_this_process();
/// Nothing more than before, but `bytes_more` of memory.
Finding check_use(const ProcessUse& before, const ProcessUse& after, std::size_t bytes_more);

/// C6: a simulated process that has ended of itself has closed its files.
Finding check_descriptors(const std::string& device, std::size_t open);

/// C7: no row's bytes in what has left a device for `where`.
Finding check_private(std::span<const std::byte> bytes, const char* where);

/// C8: a device that has folded the same prefix of the log has come to the same.
class FoldTable {
 public:
  Finding add(std::int64_t next_offset, const std::string& hash);
  /// How often there was another one of the same prefix.
  [[nodiscard]] std::uint64_t compared() const noexcept { return compared_; }

 private:
  std::map<std::int64_t, std::string> hashes_;
  std::uint64_t compared_ = 0;
};

/// C9: a loss is as that of a run without faults, within a factor, whichever is the larger one: what learns
/// faster than it may has learned something twice.
Finding check_loss(double loss, double without_faults, double factor);

}  // namespace rivulet::testing
