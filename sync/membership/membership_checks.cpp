#include <algorithm>
#include <mutex>

#include "core/nearest.h"
#include "sync/membership/cool_down.h"
#include "sync/membership/log_membership.h"

// Conditions in the log that stop a device, and what a device waits for.
namespace rivulet::sync::membership {

/// Makes the error final: every later poll() returns it again.
Status LogMembership::refuse(ErrorCode code, const std::string& why) {
  final_ = Error{code, why};
  return *final_;
}

Status LogMembership::check_session(TimePoint now) {
  if (!session_.known()) return ok();
  const auto it = fold_.devices.find(config_.hello.device);
  const bool known = it != fold_.devices.end();
  if (known && it->second.session == session_.offset()) {
    if (it->second.contested >= session_.offset())
      return refuse(ErrorCode::superseded, contested_device(it->second));
    if (it->second.expelled_again) return refuse(ErrorCode::diverged, expelled_device(it->second));
    return ok();
  }
  if (known && it->second.session > session_.offset()) {
    leave_group("superseded", Ends::nothing);  // records that both lived
    return refuse(ErrorCode::superseded, superseded_by(it->second.hello));
  }
  if (stop_requested()) return ok();
  if (config_.hello.new_run && new_run_by(fold_, config_.hello.device) != NewRun::joins)
    return refuse(ErrorCode::invalid_config, why_no_new_run(fold_, config_.job, config_.hello.device));
  if (!known) return ok();
  const auto lock = shared_.guard();
  session_.refused(now);
  return ok();
}

/// The state belongs to a view that is not in this log, or to an earlier run: folder and topic do not belong
/// together. Its READY would be ignored.
Status LogMembership::check_state() {
  if (!session_.known()) return ok();
  if (!shared_.reader().understands())
    return refuse(ErrorCode::invalid_config, beheaded_log(config_.job, shared_.reader().first_offset()));
  const AdmissionError why = wrong_state(fold_, config_.job, config_.hello.device, next_ready_.stamp);
  return why ? refuse(ErrorCode::invalid_config, text_of(why)) : ok();
}

/// Obstacle that stops this device. A lost state stops all devices, the others only this one.
AdmissionError LogMembership::ends_me(bool only_live) const {
  if (AdmissionError why = outside(fold_, config_.hello.device)) return why;
  const NextView& next = next_view(only_live);
  if (const AdmissionError* why = next.why_rejected(config_.hello.device)) return *why;
  return next.error.why == WhyNot::lost_state ? next.error : AdmissionError();
}

/// The conflict continues while its devices repeat their READYs.
Status LogMembership::check_conflict(TimePoint now) {
  const bool forming = session_.known() && !in_view_;
  if (AdmissionError why = forming ? ends_me(true) : AdmissionError()) {
    const bool of_all = why == next_view(true).error;
    return conflict_.lasts(std::move(why), of_all, now, config_.mismatch_grace) ? end_by_conflict() : ok();
  }
  if (conflict_.ends_all() && somebody_left_for(conflict_.why().why)) return end_by_conflict();
  if (!forming || !ends_me(false)) conflict_.over();
  return ok();
}

/// The first device to find that all must stop leaves with this cause. The others must not wait for it.
bool LogMembership::somebody_left_for(WhyNot cause) const {
  return std::any_of(fold_.devices.begin(), fold_.devices.end(),
                     [&](const auto& entry) { return entry.second.left_for == cause; });
}

Status LogMembership::end_by_conflict() {
  conflict_.end();
  const bool own = conflict_.why().why == WhyNot::lost_state && !config_.unusable.empty();
  return refuse(ErrorCode::invalid_config, (own ? config_.unusable + "; " : std::string()) +
                                               not_let_in(fold_, conflict_.why(), config_.hello.device));
}

std::vector<std::string> LogMembership::waiting_for() const {
  if (in_view_) return {};
  if (!session_.known() && !session_.was_refused()) return {"the control log"};
  const std::string& self = config_.hello.device;
  const auto me = fold_.devices.find(self);
  if (!session_.known() && me != fold_.devices.end())
    return {"a record of the earlier session of " + place_of(me->second.hello) + ": " +
            text_of(cannot_replace(fold_, config_.hello))};
  if (cooling_down()) return {why_cooling(fold_, me->second)};
  if (joining()) return {group_to_join(fold_, config_.hello.devices)};
  const GroupSizes& sizes = config_.hello.devices;
  // If enough devices have written READY, the missing ones did not repeat theirs.
  const bool enough = next_view(false).devices.size() >= sizes.min;
  const NextView& next = next_view(enough);
  auto names = missing_devices(fold_, next, next.devices.size() < sizes.min ? sizes.min : sizes.wanted);
  if (below_min()) names.push_back("to have at least " + std::to_string(sizes.min) + " devices");
  for (auto& hope : other_hopes(next_view(true))) names.push_back(std::move(hope));
  // Devices with different job names wait for each other in two topics.
  const bool alone = fold_.devices.size() == 1 && fold_.devices.contains(self) && sizes.max > 1;
  if (alone && !meant_job_) meant_job_ = nearest_but_number(config_.job, log_.other_jobs());
  if (alone && !meant_job_->empty())
    names.push_back("or for a correction: job.name is '" + config_.job +
                    "' here, and this broker also has job '" + *meant_job_ + "'");
  if (names.empty()) names.push_back(text_of(outside(fold_, self)));
  if (names.back().empty()) return {};
  return names;
}

}  // namespace rivulet::sync::membership
