#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "runtime/decisions/decision.h"
#include "sync/policy/arbiter.h"

namespace rivulet::runtime {

/// Recomputes every plan of a decision log in order, from the recorded facts and with the controllers that
/// made it. Pure: uses no file and no clock.
class PlanReplay {
 public:
  explicit PlanReplay(std::span<const sync::policy::ControllerEntry* const> catalog) : catalog_(catalog) {}
  /// Recomputes the values of one record and returns the first difference. Returns nullopt if all were
  /// reproduced bit for bit, or if they cannot be recomputed (unchecked()). Errors: bad_record (lines are
  /// missing, or this build lacks the controller).
  Result<std::optional<Difference>> take(const DecisionRecord& record);
  /// Call where records are missing. Checking resumes at the next view line.
  void skip();

  [[nodiscard]] std::uint64_t views() const noexcept { return views_; }
  [[nodiscard]] std::uint64_t rounds() const noexcept { return rounds_; }  ///< recomputed
  /// Rounds before the first line of a view: the log lacks the inputs of their plans.
  [[nodiscard]] std::uint64_t unchecked() const noexcept { return unchecked_; }
  /// If the log begins within a view: that view and its first logged round.
  struct Middle {
    std::uint64_t view = 0;
    std::uint64_t round = 0;
  };
  [[nodiscard]] const std::optional<Middle>& begins_in() const noexcept { return begins_in_; }
  /// Returns the current view; nullopt before the first one.
  [[nodiscard]] const std::optional<ViewRecord>& view() const noexcept { return view_; }

 private:
  Result<std::optional<Difference>> enter(const ViewRecord& view);
  Result<std::optional<Difference>> check(const RoundRecord& round);

  std::span<const sync::policy::ControllerEntry* const> catalog_;
  std::optional<ViewRecord> view_;
  sync::policy::Controllers controllers_;
  sync::policy::PolicyState state_;
  std::uint64_t views_ = 0;
  std::uint64_t rounds_ = 0;
  std::uint64_t unchecked_ = 0;
  std::optional<Middle> begins_in_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> begun_;  ///< number and token of views
};

struct PlanReplayReport {
  std::uint64_t views = 0;
  std::uint64_t rounds = 0;
  std::uint64_t unchecked = 0;
  std::vector<std::string> notes;  ///< parts that could not be checked, with the reason
  struct Found {
    std::string place;  ///< file and line
    std::uint64_t view = 0;
    std::uint64_t round = 0;
    Difference what;
  };
  std::optional<Found> difference;  ///< the first
  [[nodiscard]] bool proven() const noexcept { return !difference && unchecked == 0 && rounds > 0; }
};
/// Replays the log at `path` with its older files. Errors: io, bad_record (names file and line).
Result<PlanReplayReport> replay_plans(const std::string& path,
                                      std::span<const sync::policy::ControllerEntry* const> catalog);

}  // namespace rivulet::runtime
