#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/digest.h"
#include "core/log.h"
#include "sync/membership/log_reader.h"
#include "tests/support/sim_checkers.h"
#include "tests/support/sim_ledger.h"

namespace rivulet::testing {

/// Observes all records of the log and all states of a simulated group's devices, and runs the checkers.
/// Keeps the first finding. Owner: the simulation's thread.
class SimReferee {
 public:
  /// True if this state is durable on the disk of this device.
  using IsDurable = std::function<bool(std::size_t device, const Stamp& stamp)>;
  /// `streams` must outlive it.
  SimReferee(std::size_t devices, const sync::membership::Rules& rules, const SimStreams& streams,
             IsDurable is_durable);

  /// A device appends a record.
  void said(std::span<const std::byte> bytes);
  /// A record has its place in the log.
  void record(const LogEntry& entry);
  /// A device started with this state.
  void booted(std::size_t device, const runtime::AgreedState& state, const std::string& digest);
  /// Its state has changed. `adopted`: to that of the view; otherwise by a round.
  void changed(std::size_t device, const runtime::AgreedState& state, const std::string& digest,
               bool adopted);
  /// The fold of a device; compared with those of the referee and of other devices.
  void folded(const sync::membership::Fold& fold);
  /// A device that was in a view of this run has committed these offsets to the broker.
  void published(std::uint64_t run, std::span<const NextOffset> positions);
  /// A device has sent bytes to a peer.
  void sent(std::span<const std::byte> bytes);
  void found(const Finding& finding);

  [[nodiscard]] const Finding& finding() const noexcept { return finding_; }
  [[nodiscard]] const sync::membership::Fold& fold() const noexcept { return reader_.fold(); }
  [[nodiscard]] std::uint64_t commits() const noexcept { return commits_; }
  [[nodiscard]] std::uint64_t folds_compared() const noexcept { return folds_.compared(); }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  /// Faults of rows.
  [[nodiscard]] const SimFaultCounts& faults() const noexcept { return faults_; }
  /// Of the last committed model and its predecessors, oldest first.
  [[nodiscard]] std::vector<double> losses() const;
  /// Of all observations, in order.
  [[nodiscard]] Digest digest() noexcept { return seen_.finish(); }

 private:
  void check_view();
  void check_commit();
  void check_step(int before, const runtime::AgreedState& state);
  [[nodiscard]] int committed() const;
  void see(const std::string& text);

  sync::membership::LogReader reader_;
  const SimStreams& streams_;
  const IsDurable is_durable_;
  StateHistory history_;
  std::vector<RowBooks> books_;  ///< of each state
  std::vector<double> losses_;   ///< same
  RowTable rows_;
  FoldTable folds_;
  std::vector<int> held_;                   ///< state of each device
  std::map<std::uint64_t, int> committed_;  ///< newest by run
  std::vector<Stamp> said_;                 ///< newest that each device announced as saved
  std::uint64_t commits_ = 0;
  std::uint64_t steps_ = 0;
  SimFaultCounts faults_;
  Hasher seen_;
  Finding finding_;
};

/// "device-03" -> 2.
std::size_t index_of_device(const std::string& id);
std::string id_of_device(std::size_t device);

}  // namespace rivulet::testing
