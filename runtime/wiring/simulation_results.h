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

/// Results of a simulated group as CSV for plots and spreadsheets. Seconds are virtual, so the same seed
/// gives the same bytes. Rows are kept in memory until write().
///   rounds.csv    every round of every view: time, devices, rows, loss, slowest part, and how the
///                 contributions were summed, if they were
///   shares.csv    every device's part in every round: rows, rows waiting, seconds
///   accuracy.csv  held-out accuracy over time, if measured
///   devices.csv   every device at the end
///   summary.csv   name,value
class ResultTables {
 public:
  /// `seconds`: returns the virtual time at which a round's plan is made.
  explicit ResultTables(std::function<double()> seconds) : seconds_(std::move(seconds)) {}
  /// Returns the decision log of a device. All devices of a group write into the same tables, each round
  /// once. The tables must outlive it.
  std::unique_ptr<DecisionLog> log();
  void add_round(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
                 const sync::policy::RoundPlan& plan);
  void add_accuracy(double seconds, double accuracy);
  /// Creates the folder before a long simulation, so that an unwritable one fails early. Errors: unavailable.
  static Status prepare(const std::string& folder);
  /// Errors: io, unavailable (a file of the folder).
  Status write(const std::string& folder, const Summary& summary, double seconds) const;

 private:
  std::function<double()> seconds_;
  std::uint64_t view_ = 0;
  std::uint64_t next_round_ = 0;
  std::optional<sync::policy::Schedule> entered_;  ///< the schedule of the next round of this view, if known
  std::string rounds_;
  std::string shares_;
  std::string accuracy_;
};

}  // namespace rivulet::runtime
