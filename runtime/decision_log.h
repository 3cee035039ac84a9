#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/result.h"
#include "sync/policy/plan.h"

namespace rivulet::runtime {

/// Every plan with the table it came from, one JSON object per line, bounded: at `bytes_max` the file becomes
/// NAME.1 (the older NAME.1 is dropped) and a new one begins. Owner: the train thread. A write error is said
/// once.
class DecisionLog {
 public:
  virtual ~DecisionLog() = default;
  virtual void write(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
                     const sync::policy::RoundPlan& plan) = 0;
};
/// A line that a killed process did not finish is cut off. Errors: io (names the file).
Result<std::unique_ptr<DecisionLog>> open_decision_log(const std::string& path, std::uint64_t bytes_max);
std::unique_ptr<DecisionLog> make_null_decision_log();
/// The line that write() appends, without the newline.
std::string decision_line(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
                          const sync::policy::RoundPlan& plan);

}  // namespace rivulet::runtime
