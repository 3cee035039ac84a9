#include "sync/membership/admission_error.h"

#include <algorithm>
#include <array>

namespace rivulet::sync::membership {

namespace {

constexpr std::array<std::string_view, why_nots> names = {
    "",        "missing",    "configuration", "partition",     "number",
    "outside", "lost_state", "absent_state",  "foreign_state", "earlier_state"};

std::string list_of(const std::vector<std::string>& devices) {
  std::string text;
  for (const auto& id : devices) text += (text.empty() ? "" : ", ") + id;
  return text;
}

std::string configuration(const AdmissionError& o) {
  if (!o.subject.empty())
    return "'" + o.subject + "' is " + o.value + " on " + o.device + " and " + o.other_value + " on " +
           o.other;
  return "the configuration hash is " + o.value + " on " + o.device + " and " + o.other_value + " on " +
         o.other + ", but no key differs (different versions of rivulet?)";
}

std::string lost_state(const AdmissionError& o) {
  const std::string lost = "the group's saved state (" + text_of(o.state) + ") is on ";
  if (o.devices.empty()) return lost + "no other device";
  return lost + "none of " + list_of(o.devices) +
         ": start a device that has it in its checkpoint folder, restore an older one on every device "
         "(rivulet checkpoint restore), or start all with --new-run to start over";
}

std::string other_run(const AdmissionError& o) {
  const std::string state = "the saved state " + text_of(o.state) + " of " + o.device;
  if (o.why == WhyNot::foreign_state)
    return state + " belongs to a different run: the control topic of job " + o.subject + " has " +
           std::to_string(o.count) + " views. To start over, start every device with --new-run";
  return state + " belongs to an earlier run: run " + std::to_string(o.count) + " of job " + o.subject +
         " began after view " + std::to_string(o.wanted) +
         ". Start this device with --new-run, too: its old checkpoints are kept aside";
}

}  // namespace

std::string_view name_of(WhyNot why) noexcept {
  return names.at(static_cast<std::size_t>(why));
}

WhyNot why_not_of(std::string_view name) noexcept {
  const auto at = std::find(names.begin(), names.end(), name);
  return at == names.end() ? WhyNot::none : static_cast<WhyNot>(at - names.begin());
}

std::string holders_of(const AdmissionError& o) {
  std::string devices;
  for (const auto& id : o.devices) devices += (devices.empty() ? "" : " or ") + id;
  return devices + ", with the group's saved state (" + text_of(o.state) + ")";
}

std::string text_of(const AdmissionError& o) {
  switch (o.why) {
    case WhyNot::none: return {};
    case WhyNot::missing:
      return std::to_string(o.count) + " of " + std::to_string(o.wanted) + " devices are ready";
    case WhyNot::configuration: return configuration(o);
    case WhyNot::partition:
      return "partition " + o.subject + " is claimed by " + o.device + " and by " + o.other +
             "; every device needs its own partitions (source.partitions)";
    case WhyNot::number:
      return std::to_string(o.devices.size()) +
             " devices try to join a group of job.devices = " + std::to_string(o.wanted) + ": " +
             list_of(o.devices);
    case WhyNot::outside: return o.device + " is not in the running group: " + list_of(o.devices);
    case WhyNot::lost_state: return lost_state(o);
    case WhyNot::absent_state: return "the next view needs " + holders_of(o);
    case WhyNot::foreign_state:
    case WhyNot::earlier_state: return other_run(o);
  }
  return {};
}

}  // namespace rivulet::sync::membership
