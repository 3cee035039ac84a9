#include "sync/membership/describe.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

namespace rivulet::sync::membership {

namespace {

std::string value_of(const Hello& hello, const std::string& key) {
  const auto it = hello.config.find(key);
  return it == hello.config.end() ? "not set" : it->second;
}

std::string first_difference(const Hello& a, const Hello& b) {
  std::set<std::string> keys;
  for (const auto& entry : a.config) keys.insert(entry.first);
  for (const auto& entry : b.config) keys.insert(entry.first);
  for (const auto& key : keys) {
    const std::string left = value_of(a, key);
    const std::string right = value_of(b, key);
    if (left != right)
      return "'" + key + "' is " + left + " on " + a.device + " and " + right + " on " + b.device;
  }
  return "the configuration hash is " + a.config_hash + " on " + a.device + " and " + b.config_hash + " on " +
         b.device + " although no key differs (different versions of rivulet?)";
}

std::string claimed_twice(const Devices& devices) {
  std::unordered_map<std::string_view, std::string_view> owners;
  owners.reserve(devices.size());
  for (const auto* device : devices) {
    for (const auto& partition : device->hello.partitions) {
      const auto [it, first] = owners.emplace(partition, device->hello.device);
      if (first || it->second == device->hello.device) continue;
      return "partition " + partition + " is claimed by " + std::string(it->second) + " and by " +
             device->hello.device + "; every device needs its own (source.partitions)";
    }
  }
  return {};
}

std::string list_of(const Devices& devices) {
  std::string text;
  for (const auto* device : devices) text += (text.empty() ? "" : ", ") + device->hello.device;
  return text;
}

/// A device that came to a group which is complete and has shown that it lives.
std::string outsider_conflict(const Fold& fold, const DeviceEntry& self) {
  Devices members;
  for (const auto& id : fold.view.members) members.push_back(&fold.devices.at(id));
  members.push_back(&self);
  std::string text = first_conflict(members, self.hello.devices);
  if (!text.empty()) return text;
  members.pop_back();
  return self.hello.device + " is not in the group that runs now: " + list_of(members);
}

}  // namespace

Devices devices_of_next_view(const Fold& fold, bool only_live) {
  Devices devices;
  for (const auto& entry : fold.devices) {
    if (only_live ? is_live(fold, entry.second) : is_ready(fold, entry.second))
      devices.push_back(&entry.second);
  }
  return devices;
}

std::string first_conflict(const Devices& devices, std::uint32_t wanted) {
  for (std::size_t i = 1; i < devices.size(); ++i) {
    const Hello& first = devices.front()->hello;
    const Hello& other = devices[i]->hello;
    if (first.config_hash != other.config_hash) return first_difference(first, other);
  }
  if (const std::string text = claimed_twice(devices); !text.empty()) return text;
  if (devices.size() <= wanted) return {};
  return std::to_string(devices.size()) +
         " devices want to be in a group of job.devices = " + std::to_string(wanted) + ": " +
         list_of(devices);
}

std::string lost_state(const Fold& fold, const Devices& devices, std::uint32_t wanted) {
  const bool held = std::any_of(devices.begin(), devices.end(), [&](const DeviceEntry* device) {
    return device->ready->stamp >= fold.committed.stamp;
  });
  if (devices.size() < wanted || held || !fold.rules.guard) return {};
  return "the state that the group has saved (" + text_of(fold.committed.stamp) + ") is on none of " +
         list_of(devices) +
         ": start a device that has it in its folder checkpoints, or start all with --new-run to start over";
}

std::string why_no_new_run(const Fold& fold, const std::string& job, const std::string& device) {
  std::string who;
  for (const auto& [id, entry] : fold.devices) {
    if (id == device || !is_open(fold, entry)) continue;
    who += (who.empty() ? "" : ", ") + id + " (host " + entry.hello.host + ", pid " +
           std::to_string(entry.hello.pid) + ")";
  }
  return "run " + std::to_string(fold.run.number) + " of job " + job + " has not ended: " + who +
         " runs in it, or was killed without leaving it. Nothing was changed. End the run with 'rivulet "
         "stop --job " +
         job + "', then start all devices with --new-run; or start this one without it";
}

std::string contested_device(const DeviceEntry& device) {
  return "device " + device.hello.device + " was started in two places: " + std::to_string(swaps_max) +
         " times within 5 minutes a newer session replaced one that still lived, at last " +
         device.before.host + " (pid " + std::to_string(device.before.pid) + ") by " + device.hello.host +
         " (pid " + std::to_string(device.hello.pid) +
         "). Both have ended; start one, or give each a device.id of its own";
}

NextView next_view(const Fold& fold, bool only_live, std::uint32_t wanted) {
  NextView next{devices_of_next_view(fold, only_live), {}, {}};
  next.conflict = first_conflict(next.devices, wanted);
  next.lost = lost_state(fold, next.devices, wanted);
  return next;
}

std::string NextView::why_not_closable(std::uint32_t wanted) const {
  if (devices.size() < wanted)
    return std::to_string(devices.size()) + " of " + std::to_string(wanted) + " devices are ready";
  return conflict.empty() ? lost : conflict;
}

std::string conflict(const Fold& fold, const std::string& self, bool only_live) {
  const auto me = fold.devices.find(self);
  return me == fold.devices.end()
             ? std::string()
             : conflict(fold, self, next_view(fold, only_live, me->second.hello.devices));
}

std::string conflict(const Fold& fold, const std::string& self, const NextView& next) {
  const auto me = fold.devices.find(self);
  if (me == fold.devices.end()) return {};
  const bool member = fold.view.sessions.contains(self);
  const bool view_lives = fold.view.confirmed > me->second.session && view_intact(fold) && !view_left(fold);
  if (!member && view_lives) return outsider_conflict(fold, me->second);
  return next.conflict;
}

std::vector<std::string> missing_devices(const Fold& fold, std::uint32_t wanted) {
  // Everybody said READY at some time: what is missing is whoever did not repeat it.
  const bool enough = devices_of_next_view(fold, false).size() >= wanted;
  const auto present = [&](const DeviceEntry& d) { return enough ? is_live(fold, d) : is_ready(fold, d); };
  std::vector<std::string> last_members;
  std::vector<std::string> known;
  std::size_t here = 0;
  for (const auto& [id, device] : fold.devices) {
    if (present(device)) {
      ++here;
      continue;
    }
    known.push_back(id);
    if (fold.view.sessions.contains(id)) last_members.push_back(id);
  }
  const std::size_t missing = wanted > here ? wanted - here : 0;
  std::vector<std::string> names;
  if (known.size() <= missing) {
    names = known;
  } else if (last_members.size() <= missing) {
    names = last_members;
  }
  const std::size_t rest = missing - names.size();
  if (rest > 0) names.push_back(std::to_string(rest) + (rest == 1 ? " more device" : " more devices"));
  return names;
}

bool somebody_left_for(const Fold& fold, const std::string& conflict) {
  constexpr std::size_t compared = 200;  // the end of a reason may have been cut
  return std::any_of(fold.devices.begin(), fold.devices.end(), [&](const auto& entry) {
    const auto& left = entry.second.left;
    return left && left->substr(0, compared) == conflict.substr(0, compared);
  });
}

}  // namespace rivulet::sync::membership
