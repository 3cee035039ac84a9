#include "sync/membership/next_view.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "sync/membership/describe.h"

namespace rivulet::sync::membership {

namespace {

std::vector<std::string> ids_of(const Devices& devices) {
  std::vector<std::string> ids;
  ids.reserve(devices.size());
  for (const auto* device : devices) ids.push_back(device->hello.device);
  return ids;
}

std::string value_of(const Hello& hello, const std::string& key) {
  const auto it = hello.config.find(key);
  return it == hello.config.end() ? "not set" : it->second;
}

/// The hashes differ: either a key does, or the builds do.
AdmissionError configurations(const Hello& a, const Hello& b) {
  AdmissionError found{.why = WhyNot::configuration,
                       .device = a.device,
                       .other = b.device,
                       .value = a.config_hash,
                       .other_value = b.config_hash};
  std::set<std::string> keys;
  for (const auto& entry : a.config) keys.insert(entry.first);
  for (const auto& entry : b.config) keys.insert(entry.first);
  for (const auto& key : keys) {
    const std::string value = value_of(a, key);
    const std::string other = value_of(b, key);
    if (value == other) continue;
    found.subject = key;
    found.value = value;
    found.other_value = other;
    break;
  }
  return found;
}

/// Partitions claimed so far.
class Claims {
 public:
  /// Returns a partition that another device claims. If there is none, adds the device's claims.
  AdmissionError add(const Hello& hello) {
    for (const auto& partition : hello.partitions) {
      const auto owner = owners_.find(partition);
      if (owner == owners_.end() || owner->second == hello.device) continue;
      return {.why = WhyNot::partition,
              .subject = partition,
              .device = std::string(owner->second),
              .other = hello.device};
    }
    for (const auto& partition : hello.partitions) owners_.emplace(partition, hello.device);
    return {};
  }

 private:
  std::unordered_map<std::string_view, std::string_view> owners_;
};

AdmissionError too_many(const Devices& devices, std::uint64_t wanted) {
  return {.why = WhyNot::number, .devices = ids_of(devices), .wanted = wanted};
}

/// The first conflict within a group of `wanted`. Too few devices are not a conflict.
AdmissionError first_conflict(const Devices& devices, std::uint64_t wanted) {
  for (std::size_t i = 1; i < devices.size(); ++i) {
    const Hello& first = devices.front()->hello;
    if (first.config_hash != devices[i]->hello.config_hash) return configurations(first, devices[i]->hello);
  }
  Claims claims;
  for (const auto* device : devices)
    if (auto twice = claims.add(device->hello)) return twice;
  return devices.size() <= wanted ? AdmissionError() : too_many(devices, wanted);
}

bool formed(const Fold& fold) {
  return !fold.view.config_hash.empty();
}

bool was_member(const Fold& fold, const DeviceEntry& device) {
  return fold.view.sessions.contains(device.hello.device);
}

bool claims_as_before(const Fold& fold, const DeviceEntry& device) {
  const auto& members = fold.view.members.list();
  const auto before = std::ranges::lower_bound(members, device.hello.device);
  if (before == members.end() || *before != device.hello.device) return false;
  return fold.view.owners[static_cast<std::size_t>(before - members.begin())] == device.hello.partitions;
}

bool holds_saved(const Fold& fold, const DeviceEntry& device) {
  return device.ready->stamp >= fold.committed.stamp;
}

/// Whether a view may start from the device's state: the saved state, or an intentionally older one.
bool serves(const Fold& fold, const DeviceEntry& device) {
  return holds_saved(fold, device) || device.ready->rolls_back;
}

AdmissionError lost_state(const Fold& fold, const Devices& devices) {
  return {.why = WhyNot::lost_state, .devices = ids_of(devices), .state = fold.committed.stamp};
}

/// Builds a NextView for a formed group: distributes places and rejects devices.
class Places {
 public:
  Places(const Fold& fold, NextView& next, std::uint64_t wanted)
      : fold_(fold), next_(next), wanted_(wanted) {}

  /// Returns false if no device has the last view's configuration and their configurations differ.
  bool assign(const Devices& all) {
    Devices fitting = choose_configuration(all);
    if (fitting.empty()) return false;
    std::stable_sort(fitting.begin(), fitting.end(),
                     [&](const auto* a, const auto* b) { return precedence(*a) < precedence(*b); });
    for (const auto* device : fitting) give_place(*device);
    if (next_.devices.size() >= wanted_) reject_stateless();
    const auto by_id = [](const auto* a, const auto* b) { return a->hello.device < b->hello.device; };
    std::sort(next_.devices.begin(), next_.devices.end(), by_id);
    std::sort(next_.rejected.begin(), next_.rejected.end(),
              [&](const auto& a, const auto& b) { return by_id(a.device, b.device); });
    return true;
  }

  [[nodiscard]] std::uint64_t wanted() const noexcept { return wanted_; }

 private:
  [[nodiscard]] std::tuple<bool, std::int64_t> precedence(const DeviceEntry& device) const {
    return {!claims_as_before(fold_, device), device.session};
  }

  /// Returns the devices with the group's configuration and rejects the others.
  Devices choose_configuration(const Devices& all) {
    const auto stands = [&](const auto* d) { return d->hello.config_hash == fold_.view.config_hash; };
    const auto keeper = std::find_if(all.begin(), all.end(), stands);
    if (keeper == all.end()) {
      const auto as_first = [&](const auto* d) { return d->hello.config_hash == all[0]->hello.config_hash; };
      return std::all_of(all.begin(), all.end(), as_first) ? all : Devices();
    }
    Devices fitting;
    for (const auto* device : all) {
      if (stands(device))
        fitting.push_back(device);
      else
        next_.rejected.push_back({device, configurations((*keeper)->hello, device->hello)});
    }
    if (fitting.size() < all.size()) wanted_ = (*keeper)->hello.devices;
    return fitting;
  }

  void give_place(const DeviceEntry& device) {
    AdmissionError why = claims_.add(device.hello);
    if (!why && next_.devices.size() == wanted_) {
      Devices with = next_.devices;
      with.push_back(&device);
      why = too_many(with, wanted_);
    }
    if (why)
      next_.rejected.push_back({&device, std::move(why)});
    else
      next_.devices.push_back(&device);
  }

  /// The state may be on the disk of an absent member whose place a newcomer without it took.
  void reject_stateless() {
    const auto newcomer = [&](const auto* device) { return !was_member(fold_, *device); };
    const bool held = std::any_of(next_.devices.begin(), next_.devices.end(),
                                  [&](const auto* device) { return serves(fold_, *device); });
    const bool all_new = std::all_of(next_.devices.begin(), next_.devices.end(), newcomer);
    if (held || all_new || !fold_.rules.guard) return;
    const AdmissionError why = lost_state(fold_, next_.devices);
    for (const auto* device : next_.devices)
      if (newcomer(device)) next_.rejected.push_back({device, why});
    std::erase_if(next_.devices, newcomer);
  }

  const Fold& fold_;
  NextView& next_;
  std::uint64_t wanted_;
  Claims claims_;
};

/// Obstacle for the remaining devices: too few, or none has the saved state.
AdmissionError shortage(const Fold& fold, const Devices& devices, std::uint64_t wanted) {
  if (devices.size() < wanted) return {.why = WhyNot::missing, .count = devices.size(), .wanted = wanted};
  const bool held =
      std::any_of(devices.begin(), devices.end(), [&](const auto* device) { return serves(fold, *device); });
  return held || !fold.rules.guard ? AdmissionError() : lost_state(fold, devices);
}

/// Whether another present device has the saved state: a member of an intact view, or one with a READY for
/// the next.
bool somebody_serves(const Fold& fold, const std::string& device) {
  const bool stands = fold.view.number > 0 && view_intact(fold) && !view_left(fold);
  return std::any_of(fold.devices.begin(), fold.devices.end(), [&](const auto& entry) {
    const auto& [id, other] = entry;
    if (id == device || !is_open(fold, other)) return false;
    return (stands && was_member(fold, other)) || (is_ready(fold, other) && holds_saved(fold, other));
  });
}

/// The first new claim of `hello` that conflicts with an open member of the last view.
AdmissionError claimed_by_others(const Fold& fold, const Hello& hello, const DeviceEntry& present) {
  if (hello.partitions == present.hello.partitions) return {};
  Claims claims;
  for (const auto& entry : fold.devices)
    if (entry.first != hello.device && was_member(fold, entry.second) && is_open(fold, entry.second))
      claims.add(entry.second.hello);
  return claims.add(hello);
}

AdmissionError configuration_of_twin(const Fold& fold, const Hello& hello, const DeviceEntry& present) {
  const std::string& stands = fold.view.config_hash;
  if (stands.empty() || present.hello.config_hash != stands || hello.config_hash == stands) return {};
  AdmissionError found = configurations(present.hello, hello);
  found.device = place_of(present.hello);
  found.other = place_of(hello);
  return found;
}

}  // namespace

const AdmissionError* NextView::why_rejected(const std::string& device) const {
  const auto at =
      std::lower_bound(rejected.begin(), rejected.end(), device,
                       [](const auto& entry, const auto& id) { return entry.device->hello.device < id; });
  return at != rejected.end() && at->device->hello.device == device ? &at->why : nullptr;
}

NextView next_view(const Fold& fold, bool only_live, std::uint32_t wanted) {
  Devices all;
  for (const auto& entry : fold.devices) {
    if (only_live ? is_live(fold, entry.second) : is_ready(fold, entry.second)) all.push_back(&entry.second);
  }
  NextView next;
  Places places(fold, next, wanted);
  if (!formed(fold) || !places.assign(all)) {
    next.error = first_conflict(all, wanted);
    next.devices = std::move(all);
  }
  if (!next.error) next.error = shortage(fold, next.devices, places.wanted());
  return next;
}

AdmissionError outside(const Fold& fold, const std::string& self) {
  const auto me = fold.devices.find(self);
  if (me == fold.devices.end() || fold.view.sessions.contains(self)) return {};
  // Any accepted CLOSE shows that all members had written READY after the last HELLO.
  const std::int64_t lived = std::max(static_cast<std::int64_t>(fold.view.token), fold.view.confirmed);
  if (fold.view.number == 0 || fold.view.members.empty() || lived <= me->second.session) return {};
  if (!view_intact(fold) || view_left(fold)) return {};
  Devices members;
  for (const auto& id : fold.view.members) members.push_back(&fold.devices.at(id));
  members.push_back(&me->second);
  if (auto why = first_conflict(members, me->second.hello.devices)) return why;
  members.pop_back();
  return {.why = WhyNot::outside, .device = self, .devices = ids_of(members)};
}

AdmissionError wrong_state(const Fold& fold, const std::string& job, const std::string& device,
                           const Stamp& state) {
  if (state.lineage > fold.view.number)
    return {.why = WhyNot::foreign_state,
            .subject = job,
            .device = device,
            .count = fold.view.number,
            .state = state};
  if (is_of_run(fold, state)) return {};
  return {.why = WhyNot::earlier_state,
          .subject = job,
          .device = device,
          .count = fold.run.number,
          .wanted = fold.run.views_before,
          .state = state};
}

AdmissionError cannot_replace(const Fold& fold, const Hello& hello) {
  const auto present = fold.devices.find(hello.device);
  if (present == fold.devices.end() || !is_open(fold, present->second) || !hello.has_state) return {};
  if (auto why = wrong_state(fold, "", hello.device, *hello.has_state)) return why;
  if (auto why = configuration_of_twin(fold, hello, present->second)) return why;
  if (auto why = claimed_by_others(fold, hello, present->second)) return why;
  if (*hello.has_state >= fold.committed.stamp || somebody_serves(fold, hello.device)) return {};
  return {.why = WhyNot::lost_state, .device = hello.device, .state = fold.committed.stamp};
}

std::vector<std::string> missing_devices(const Fold& fold, const NextView& next, std::uint32_t wanted) {
  std::vector<std::string> last_members;
  std::vector<std::string> known;
  const auto here = [&](const std::string& id) {
    return std::any_of(next.devices.begin(), next.devices.end(),
                       [&](const auto* device) { return device->hello.device == id; });
  };
  for (const auto& entry : fold.devices) {
    const std::string& id = entry.first;
    if (here(id) || next.why_rejected(id) != nullptr) continue;
    known.push_back(id);
    if (fold.view.sessions.contains(id)) last_members.push_back(id);
  }
  const std::size_t missing = wanted > next.devices.size() ? wanted - next.devices.size() : 0;
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

}  // namespace rivulet::sync::membership
