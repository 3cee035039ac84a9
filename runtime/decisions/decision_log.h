#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/result.h"
#include "runtime/decisions/decision.h"

namespace rivulet::runtime {

/// Contents of a log: every plan with all its inputs, or only the lines of views.
enum class Recorded : std::uint8_t { rounds, views };

/// Writes a decision log of bounded size. A file of `bytes_max` / 8 bytes is renamed to the next number
/// (runtime/decisions/decision_files.h), atomically, so that a killed process loses no line. The plans in a
/// file can be recomputed from that file alone. Deletes the oldest files, so that the total size never
/// exceeds `bytes_max` plus one line. Reports the first write error and then stops writing. Owner: the train
/// thread.
class DecisionLog {
 public:
  virtual ~DecisionLog() = default;
  /// Call before the first round of a view.
  virtual void enter_view(const ViewRecord&) {}
  virtual void write(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
                     const sync::policy::RoundPlan& plan) = 0;
  /// Call after each write(). The PolicyState is an input of the next round's plan.
  virtual void finish_round(const sync::policy::PolicyState&) {}
};
/// Opens or creates the log. Removes an incomplete last line left by a killed process. Errors: io (names the
/// file).
Result<std::unique_ptr<DecisionLog>> open_decision_log(const std::string& path, std::uint64_t bytes_max,
                                                       Recorded recorded = Recorded::rounds);
std::unique_ptr<DecisionLog> make_null_decision_log();

}  // namespace rivulet::runtime
