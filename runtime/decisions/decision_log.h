#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/result.h"
#include "runtime/decisions/decision.h"

namespace rivulet::runtime {

/// How much of a run is written: every plan with all it was made from, or the lines of views alone.
enum class Recorded : std::uint8_t { rounds, views };

/// Decisions as runtime/decisions/decision.h writes them, bounded: a file that holds an eighth of `bytes_max`
/// gets the next number (runtime/decisions/decision_files.h) in one rename, so that a process killed in it
/// loses no line, and a new one begins, from which alone its plans can be made again, too. The oldest files
/// go, so that all together never take more than `bytes_max` and one line. Owner: the train thread. A write
/// error is logged once, and nothing is written from there on.
class DecisionLog {
 public:
  virtual ~DecisionLog() = default;
  /// Before the first round of a view.
  virtual void enter_view(const ViewRecord&) {}
  virtual void write(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
                     const sync::policy::RoundPlan& plan) = 0;
  /// After each write(): what the plan of the view's next round will start from.
  virtual void finish_round(const sync::policy::PolicyState&) {}
};
/// A line that a killed process did not finish is cut off. Errors: io (names the file).
Result<std::unique_ptr<DecisionLog>> open_decision_log(const std::string& path, std::uint64_t bytes_max,
                                                       Recorded recorded = Recorded::rounds);
std::unique_ptr<DecisionLog> make_null_decision_log();

}  // namespace rivulet::runtime
