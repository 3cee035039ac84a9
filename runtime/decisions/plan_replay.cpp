#include "runtime/decisions/plan_replay.h"

#include "runtime/decisions/decision_reader.h"

namespace rivulet::runtime {
namespace {

/// The first state of a view. The memory of controllers comes from the log.
sync::policy::PolicyState at_the_start(const ViewRecord& view, const sync::policy::Controllers& controllers) {
  return sync::policy::first_state(view.members, view.policy, controllers, view.state.memory, view.number);
}

}  // namespace

Result<std::optional<Difference>> PlanReplay::take(const DecisionRecord& record) {
  const auto* view = std::get_if<ViewRecord>(&record);
  return view != nullptr ? enter(*view) : check(std::get<RoundRecord>(record));
}

void PlanReplay::skip() {
  view_.reset();
}

Result<std::optional<Difference>> PlanReplay::enter(const ViewRecord& view) {
  auto controllers = sync::policy::controllers_of(view.policy, catalog_);
  if (!controllers) return Error{ErrorCode::bad_record, controllers.error().message};
  controllers_ = std::move(controllers).value();
  if (auto fits = sync::policy::check_policy(view.policy, controllers_, view.state); !fits)
    return fits.error();
  const bool same = view_ && view_->number == view.number && view_->token == view.token;
  const bool at_start = view.state.round == 0;
  std::optional<Difference> differs;
  if (same && !at_start) {  // a new file begins here
    differs = difference(view.state, state_);
  } else if (at_start) {
    if (!begun_.emplace(view.number, view.token).second)
      return Error{ErrorCode::bad_record,
                   "view " + std::to_string(view.number) +
                       " begins a second time: this log contains two logs, or one log twice"};
    differs = difference(view.state, at_the_start(view, controllers_));
    ++views_;
  } else if (view_) {
    return Error{ErrorCode::bad_record, "the first " + std::to_string(view.state.round) + " rounds of view " +
                                            std::to_string(view.number) + " are missing"};
  } else {
    if (unchecked_ == 0) begins_in_ = Middle{view.number, view.state.round};
    ++views_;
  }
  view_ = view;
  state_ = view.state;
  return differs;
}

Result<std::optional<Difference>> PlanReplay::check(const RoundRecord& round) {
  if (!view_) {
    if (!begins_in_) begins_in_ = Middle{round.view, round.round};
    ++unchecked_;
    return std::optional<Difference>();
  }
  const auto missing = [&](const std::string& what) {
    return Error{ErrorCode::bad_record, what + ": lines are missing"};
  };
  if (round.view != view_->number)
    return missing("a round of view " + std::to_string(round.view) + " in view " +
                   std::to_string(view_->number));
  if (round.round != state_.round)
    return missing("found round " + std::to_string(round.round) + ", but round " +
                   std::to_string(state_.round) + " of view " + std::to_string(round.view) + " is next");
  if (round.table.size() != view_->members.size())
    return Error{ErrorCode::bad_record, "facts of " + std::to_string(round.table.size()) +
                                            " devices in a view of " + std::to_string(view_->members.size())};
  for (const auto& facts : round.table.facts)
    if (facts.measurements.size() != sync::policy::measurements_of(controllers_))
      return Error{ErrorCode::bad_record,
                   "the number of measurements in the facts differs from what the controllers request"};
  const std::uint64_t last = sync::policy::hash_of(state_.last, state_.table_hash);
  const auto plan = sync::policy::plan(round.table, view_->policy, controllers_, state_);
  ++rounds_;
  for (const auto& facts : round.table.facts)
    if (facts.plan_hash != last)
      return std::optional(Difference{"plan_hash", std::to_string(facts.plan_hash), std::to_string(last)});
  if (auto differs = difference(round.plan, plan)) return differs;
  const std::uint64_t hash = sync::policy::hash_of(plan, state_.table_hash);
  if (hash == round.plan_hash) return std::optional<Difference>();
  return std::optional(Difference{"hash", std::to_string(round.plan_hash), std::to_string(hash)});
}

Result<PlanReplayReport> replay_plans(const std::string& path,
                                      std::span<const sync::policy::ControllerEntry* const> catalog) {
  auto reader = DecisionReader::open(path);
  if (!reader) return reader.error();
  PlanReplay replay(catalog);
  PlanReplayReport report;
  while (!report.difference) {
    auto record = reader.value().next();
    if (!record) return record.error();
    if (!record.value()) break;
    if (reader.value().behind_gap()) replay.skip();
    auto differs = replay.take(*record.value());
    if (!differs)
      return Error{ErrorCode::bad_record, reader.value().place() + ": " + differs.error().message};
    if (!differs.value()) continue;
    const auto* round = std::get_if<RoundRecord>(&*record.value());
    report.difference = {reader.value().place(), replay.view()->number,
                         round != nullptr ? round->round : replay.view()->state.round, *differs.value()};
  }
  report.views = replay.views();
  report.rounds = replay.rounds();
  report.unchecked = replay.unchecked();
  report.notes = reader.value().missing();
  if (const auto& middle = replay.begins_in())
    report.notes.push_back(
        "the log begins in the middle of view " + std::to_string(middle->view) + ", at its round " +
        std::to_string(middle->round) +
        (report.unchecked > 0 ? ": " + std::to_string(report.unchecked) + " rounds cannot be checked" : ""));
  if (const auto& torn = reader.value().torn(); !torn.empty())
    report.notes.push_back(torn + " is incomplete and was skipped");
  return report;
}

}  // namespace rivulet::runtime
