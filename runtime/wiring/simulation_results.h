#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/result.h"
#include "runtime/decisions/decision_log.h"
#include "runtime/status/summary.h"

namespace rivulet::runtime {

/// What a simulated group did, as CSV for plots and spreadsheets. Seconds are of the simulation, so the same
/// seed gives the same bytes. Rows are kept in memory until write().
///   rounds.csv    every round of every view, once: when, how many devices, rows, loss, slowest part, and how
///                 contributions were summed, if they were
///   shares.csv    every device's part in every round: rows, rows waiting, seconds
///   accuracy.csv  held-out accuracy over time, if there is any
///   devices.csv   every device at the end
///   summary.csv   name,value
class ResultTables {
 public:
  /// `seconds`: the time of the simulation when a round's plan is known.
  explicit ResultTables(std::function<double()> seconds) : seconds_(std::move(seconds)) {}
  /// Decision log of a device; all of a group write into the same tables, each round once. The tables must
  /// outlive it.
  std::unique_ptr<DecisionLog> log();
  void add_round(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
                 const sync::policy::RoundPlan& plan);
  void add_accuracy(double seconds, double accuracy);
  /// Makes the folder, before hours of simulation end at one that cannot be written to. Errors: unavailable.
  static Status prepare(const std::string& folder);
  /// Errors: io, unavailable (a file of the folder).
  Status write(const std::string& folder, const Summary& summary, double seconds) const;

 private:
  std::function<double()> seconds_;
  std::uint64_t view_ = 0;
  std::uint64_t next_round_ = 0;
  std::optional<sync::policy::Schedule> entered_;  ///< how the next round of this view is entered, if known
  std::string rounds_;
  std::string shares_;
  std::string accuracy_;
};

}  // namespace rivulet::runtime
