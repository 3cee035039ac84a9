#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/result.h"
#include "runtime/decisions/decision.h"

namespace rivulet::runtime {

/// What a log contains: every plan with all its inputs, or only the lines of views.
enum class Recorded : std::uint8_t { rounds, views };

/// Writes a decision log of bounded size. A file of `bytes_max` / 8 bytes is renamed to the next number
/// (runtime/decisions/decision_files.h), atomically, so that a killed process loses no line. The new file
/// alone is enough to recompute its plans. Deletes the oldest files: all together never exceed `bytes_max`
/// and one line. Reports a write error once and then stops writing. Owner: the train thread.
class DecisionLog {
 public:
  virtual ~DecisionLog() = default;
  /// Before the first round of a view.
  virtual void enter_view(const ViewRecord&) {}
  virtual void write(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
                     const sync::policy::RoundPlan& plan) = 0;
  /// After each write(). `PolicyState`: input of the next round's plan.
  virtual void finish_round(const sync::policy::PolicyState&) {}
};
/// Removes an incomplete last line of a killed process. Errors: io (names the file).
Result<std::unique_ptr<DecisionLog>> open_decision_log(const std::string& path, std::uint64_t bytes_max,
                                                       Recorded recorded = Recorded::rounds);
std::unique_ptr<DecisionLog> make_null_decision_log();

}  // namespace rivulet::runtime
