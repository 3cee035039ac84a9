#include <algorithm>
#include <mutex>

#include "core/nearest.h"
#include "sync/membership/log_membership.h"

// What in the log ends a device, and what it waits for.
namespace rivulet::sync::membership {

/// Final: every later poll() returns the same.
Status LogMembership::refuse(ErrorCode code, const std::string& why) {
  final_ = Error{code, why};
  return *final_;
}

Status LogMembership::check_session(TimePoint now) {
  if (session_ < 0) return ok();
  const auto it = fold_.devices.find(config_.hello.device);
  const bool known = it != fold_.devices.end();
  if (known && it->second.session == session_) {
    if (it->second.contested < session_) return ok();
    return refuse(ErrorCode::superseded, contested_device(it->second));
  }
  if (known && it->second.session > session_) {
    leave_group("superseded", Ends::nothing);  // shows the log that both lived
    return refuse(ErrorCode::superseded, superseded_by(it->second.hello));
  }
  if (stop_asked()) return ok();
  if (config_.hello.new_run && new_run_by(fold_, config_.hello.device) != NewRun::joins)
    return refuse(ErrorCode::invalid_config, why_no_new_run(fold_, config_.job, config_.hello.device));
  if (known) note_refusal(now);
  return ok();
}

/// The HELLO was read back and has begun no session: the one that is there keeps its place for now.
void LogMembership::note_refusal(TimePoint now) {
  const auto lock = shared_.guard();
  if (refused_at_ < 0) {
    refused_at_ = session_;
    refused_since_ = now;
  }
  session_ = -1;
  hello_.active = false;
}

/// A state from a view that this log has never seen, or from before a new run: the folder and the topic do
/// not belong together. Nobody would believe its READY.
Status LogMembership::check_state() {
  if (session_ < 0) return ok();
  if (!shared_.reader().understands())
    return refuse(ErrorCode::invalid_config, beheaded_log(config_.job, shared_.reader().first_offset()));
  const Obstacle why = wrong_state(fold_, config_.job, config_.hello.device, stamp_);
  return why ? refuse(ErrorCode::invalid_config, text_of(why)) : ok();
}

/// Nobody but this device ends by the first two; by a state that is lost all do.
Obstacle LogMembership::ends_me(bool only_live) const {
  if (Obstacle why = outside(fold_, config_.hello.device)) return why;
  const NextView& next = next_view(only_live);
  if (const Obstacle* why = next.why_rejected(config_.hello.device)) return *why;
  return next.obstacle.why == WhyNot::lost_state ? next.obstacle : Obstacle();
}

/// It is an error only after it lasted, so that a device which is just being replaced does not end another.
/// It keeps lasting while its devices are asked to show again that they live.
Status LogMembership::check_conflict(TimePoint now) {
  const bool forming = session_ >= 0 && !in_view_;
  if (Obstacle why = forming ? ends_me(true) : Obstacle()) {
    if (!in_conflict_) conflict_since_ = now;
    in_conflict_ = true;
    of_all_ = why == next_view(true).obstacle;
    conflict_ = std::move(why);
    return now - conflict_since_ < config_.mismatch_grace ? ok() : end_by_conflict();
  }
  if (in_conflict_ && of_all_ && somebody_left_for(conflict_.why)) return end_by_conflict();
  if (!forming || !ends_me(false)) in_conflict_ = false;
  return ok();
}

/// Whoever finds first that all must end leaves for it; that there are fewer now is no reason to wait.
bool LogMembership::somebody_left_for(WhyNot cause) const {
  return std::any_of(fold_.devices.begin(), fold_.devices.end(),
                     [&](const auto& entry) { return entry.second.left_for == cause; });
}

Status LogMembership::end_by_conflict() {
  if (of_all_) final_cause_ = conflict_.why;
  const bool own = conflict_.why == WhyNot::lost_state && !config_.unusable.empty();
  return refuse(ErrorCode::invalid_config, (own ? config_.unusable + "; " : std::string()) +
                                               not_let_in(fold_, conflict_, config_.hello.device));
}

std::vector<std::string> LogMembership::waiting_for() const {
  if (in_view_) return {};
  if (session_ < 0 && refused_at_ < 0) return {"the control log"};
  const std::string& self = config_.hello.device;
  const auto me = fold_.devices.find(self);
  if (session_ < 0 && me != fold_.devices.end())
    return {"a sign of the earlier session of " + place_of(me->second.hello) + ": " +
            text_of(cannot_replace(fold_, config_.hello))};
  // Everybody wrote READY at some time: what is missing is whoever did not repeat it.
  const std::uint32_t wanted = config_.hello.devices;
  const bool enough = next_view(false).devices.size() >= wanted;
  auto names = missing_devices(fold_, next_view(enough), wanted);
  for (auto& hope : other_hopes(next_view(true))) names.push_back(std::move(hope));
  // Two that call their job differently wait in two topics, each for the other.
  const bool alone = fold_.devices.size() == 1 && fold_.devices.contains(self) && wanted > 1;
  if (alone && !meant_job_) meant_job_ = nearest_but_number(config_.job, log_.other_jobs());
  if (alone && !meant_job_->empty())
    names.push_back("or for a correction: job.name is '" + config_.job +
                    "' here, and this broker also has job '" + *meant_job_ + "'");
  if (names.empty()) names.push_back(text_of(outside(fold_, self)));
  if (names.back().empty()) return {};
  return names;
}

}  // namespace rivulet::sync::membership
