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

/// Sees every record of the log and every state of every device of a simulated group, and runs the checkers.
/// The first finding stays. Owner: the thread of the simulation.
class SimReferee {
 public:
  /// Is this state on the disk of this device, whatever happens to its power?
  using IsDurable = std::function<bool(std::size_t device, const Stamp& stamp)>;
  /// `streams` outlives it.
  SimReferee(std::size_t devices, const sync::membership::Rules& rules, const SimStreams& streams,
             IsDurable is_durable);

  /// A device says a record.
  void said(std::span<const std::byte> bytes);
  /// A record has got its place in the log.
  void record(const LogEntry& entry);
  /// A device was started with this state.
  void booted(std::size_t device, const runtime::AgreedState& state, const std::string& digest);
  /// Its state has changed. `adopted`: to that of the view, otherwise by a round.
  void changed(std::size_t device, const runtime::AgreedState& state, const std::string& digest,
               bool adopted);
  /// What a device has folded; compared with what the referee has, and with other devices.
  void folded(const sync::membership::Fold& fold);
  /// A device that was in a view of this run has told the broker that these offsets are done with.
  void published(std::uint64_t run, std::span<const NextOffset> positions);
  /// A device has sent something to another one.
  void sent(std::span<const std::byte> bytes);
  void found(const Finding& finding);

  [[nodiscard]] const Finding& finding() const noexcept { return finding_; }
  [[nodiscard]] const sync::membership::Fold& fold() const noexcept { return reader_.fold(); }
  [[nodiscard]] std::uint64_t commits() const noexcept { return commits_; }
  [[nodiscard]] std::uint64_t folds_compared() const noexcept { return folds_.compared(); }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  /// What happened to rows.
  [[nodiscard]] const SimFaultCounts& faults() const noexcept { return faults_; }
  /// Of the model that was committed last and of those it came out of, oldest first.
  [[nodiscard]] std::vector<double> losses() const;
  /// Of all that it has seen, in order.
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
  std::map<std::uint64_t, int> committed_;  ///< by run: its newest
  std::vector<Stamp> said_;                 ///< newest that each device has said it saved
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
