#include "sync/membership/describe.h"

namespace rivulet::sync::membership {

std::string place_of(const Hello& hello) {
  return hello.device + " (host " + hello.host + ", pid " + std::to_string(hello.pid) + ")";
}

std::string why_no_new_run(const Fold& fold, const std::string& job, const std::string& device) {
  std::string who;
  for (const auto& [id, entry] : fold.devices) {
    if (id == device || !is_open(fold, entry)) continue;
    who += (who.empty() ? "" : ", ") + id + " (host " + entry.hello.host + ", pid " +
           std::to_string(entry.hello.pid) + ")";
  }
  return "run " + std::to_string(fold.run.number) + " of job " + job + " has not ended: " + who +
         " is still in it, or was killed before leaving it. Nothing was changed. End the run with 'rivulet "
         "stop --job " +
         job + "', then start all devices with --new-run; or start this one without it";
}

std::string contested_device(const DeviceEntry& device) {
  return "device " + device.hello.device + " was started in two places: " + std::to_string(swaps_max) +
         " times within 5 minutes, a newer session replaced a running one, most recently " +
         device.before.host + " (pid " + std::to_string(device.before.pid) + ") by " + device.hello.host +
         " (pid " + std::to_string(device.hello.pid) +
         "). Both have ended. Start one, or give each its own device.id";
}

std::string expelled_device(const DeviceEntry& device) {
  return "the other devices have found the state or the messages of device " + device.hello.device +
         " wrong twice within " + std::to_string(expelled_within_ms / 60'000) +
         " minutes: check the memory, the disk and the network of this machine, then start the device again";
}

std::string group_to_join(const Fold& fold, const GroupSizes& sizes) {
  std::string members;
  for (const auto& id : fold.view.members) members += (members.empty() ? "" : ", ") + id;
  if (fold.view.members.size() < sizes.max) return "the end of a round of " + members;
  return "a place: the group has its " + std::to_string(sizes.max) + " devices (job.devices): " + members;
}

std::string superseded_by(const Hello& newer) {
  return "a newer session of device " + newer.device + " was started on host " + newer.host + " (pid " +
         std::to_string(newer.pid) +
         ") and takes its place. If these are two devices, give each its own device.id";
}

std::string keeps_its_place(const Hello& present, const AdmissionError& why) {
  return "device " + present.device + " is running on host " + present.host + " (pid " +
         std::to_string(present.pid) +
         ") and keeps its place, because this process cannot replace it: " + text_of(why) +
         ". If these are two devices, give each its own device.id";
}

std::string not_let_in(const Fold& fold, const AdmissionError& why, const std::string& self) {
  std::string text = text_of(why);
  if (why.why == WhyNot::configuration)
    return text + ". The group keeps the configuration of its last view while a device uses it, so " + self +
           " is rejected: start it with that configuration, or end the job with 'rivulet stop' and start all "
           "devices with the new one";
  if (why.why != WhyNot::partition) return text;
  const char* const before =
      fold.view.sessions.contains(why.device) ? " had it in the last view" : " joined first";
  return text + ". " + why.device + before + ", so " + self + " is rejected";
}

std::string beheaded_log(const std::string& job, std::int64_t first_offset) {
  return "the control topic of job " + job + " begins at offset " + std::to_string(first_offset) +
         ": its oldest records are gone. They name the group's members, and no later record repeats them. "
         "The topic must keep all records (retention.ms = -1, retention.bytes = -1)";
}

std::vector<std::string> other_hopes(const NextView& next) {
  std::vector<std::string> hopes;
  hopes.reserve(next.rejected.size() + 1);
  for (const auto& [device, why] : next.rejected)
    hopes.push_back(device->hello.device + " to leave (" + text_of(why) + ")");
  switch (next.error.why) {
    case WhyNot::configuration:
    case WhyNot::partition:
    case WhyNot::number: hopes.push_back("a correction (" + text_of(next.error) + ")"); break;
    case WhyNot::lost_state: hopes.push_back(text_of(next.error)); break;
    case WhyNot::absent_state: hopes.push_back(holders_of(next.error)); break;
    default: break;
  }
  return hopes;
}

}  // namespace rivulet::sync::membership
