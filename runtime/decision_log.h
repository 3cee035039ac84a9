#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/result.h"
#include "runtime/decision.h"

namespace rivulet::runtime {

/// Every plan with all it was made from (runtime/decision.h says how it is written), bounded: at `bytes_max`
/// the file becomes NAME.1 (the older NAME.1 is dropped) and a new one begins, from which alone its plans can
/// be made again, too. Owner: the train thread. A write error is said once.
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
Result<std::unique_ptr<DecisionLog>> open_decision_log(const std::string& path, std::uint64_t bytes_max);
std::unique_ptr<DecisionLog> make_null_decision_log();

}  // namespace rivulet::runtime
