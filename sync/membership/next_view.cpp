#include "sync/membership/next_view.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "sync/membership/cool_down.h"
#include "sync/membership/describe.h"
#include "sync/membership/left_out.h"
#include "sync/membership/waiting.h"

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

/// The first conflict within a group of these sizes. Too few devices are not a conflict; too many are one if
/// the size is fixed.
AdmissionError first_conflict(const Devices& devices, const GroupSizes& sizes) {
  for (std::size_t i = 1; i < devices.size(); ++i) {
    const Hello& first = devices.front()->hello;
    if (first.config_hash != devices[i]->hello.config_hash) return configurations(first, devices[i]->hello);
  }
  Claims claims;
  for (const auto* device : devices)
    if (auto twice = claims.add(device->hello)) return twice;
  const bool fits = devices.size() <= sizes.max || !sizes.is_fixed();
  return fits ? AdmissionError() : too_many(devices, sizes.max);
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

/// No device has the saved state. It is lost if all that announced it are here, and absent otherwise.
AdmissionError missing_state(const Fold& fold, const Devices& devices) {
  const std::vector<std::string> here = ids_of(devices);
  std::vector<std::string> absent;
  std::ranges::set_difference(fold.committed_by, here, std::back_inserter(absent));
  if (absent.empty()) return {.why = WhyNot::lost_state, .devices = here, .state = fold.committed.stamp};
  return {.why = WhyNot::absent_state, .devices = std::move(absent), .state = fold.committed.stamp};
}

/// Builds a NextView for a formed group: distributes places and rejects devices.
class Places {
 public:
  Places(const Fold& fold, NextView& next, const GroupSizes& sizes)
      : fold_(fold), next_(next), sizes_(sizes) {}

  /// Returns false if no device has the last view's configuration and their configurations differ.
  bool assign(const Devices& all) {
    Devices fitting = choose_configuration(all);
    if (fitting.empty()) return false;
    std::stable_sort(fitting.begin(), fitting.end(),
                     [&](const auto* a, const auto* b) { return precedence(*a) < precedence(*b); });
    for (const auto* device : fitting) give_place(*device);
    const auto by_id = [](const auto* a, const auto* b) { return a->hello.device < b->hello.device; };
    std::sort(next_.devices.begin(), next_.devices.end(), by_id);
    std::sort(next_.rejected.begin(), next_.rejected.end(),
              [&](const auto& a, const auto& b) { return by_id(a.device, b.device); });
    return true;
  }

  [[nodiscard]] const GroupSizes& sizes() const noexcept { return sizes_; }

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
    if (fitting.size() < all.size()) sizes_ = (*keeper)->hello.devices;
    return fitting;
  }

  void give_place(const DeviceEntry& device) {
    AdmissionError why = claims_.add(device.hello);
    if (!why && next_.devices.size() == sizes_.max) {
      if (!sizes_.is_fixed()) return;
      Devices with = next_.devices;
      with.push_back(&device);
      why = too_many(with, sizes_.max);
    }
    if (why)
      next_.rejected.push_back({&device, std::move(why)});
    else
      next_.devices.push_back(&device);
  }

  const Fold& fold_;
  NextView& next_;
  GroupSizes sizes_;
  Claims claims_;
};

/// Before the first view of a run, the first devices get the places.
void keep_first(Devices& devices, std::size_t most) {
  if (devices.size() <= most) return;
  std::ranges::sort(devices, {}, [](const auto* device) { return device->session; });
  devices.resize(most);
  std::ranges::sort(devices, {}, [](const auto* device) -> const auto& { return device->hello.device; });
}

/// The devices that may join now; all of them if the others are too few, or none of them has the saved state.
Devices without_cooling(const Fold& fold, const GroupSizes& sizes, const Devices& all) {
  Devices rest;
  std::ranges::copy_if(all, std::back_inserter(rest), [&](const auto* device) {
    return is_of_last_view(fold, *device) || !is_cooling(fold, *device);
  });
  return rest.size() >= sizes.min && any_serves(fold, rest) ? rest : all;
}

/// Newcomers that still copy the state of the members that are here. Nobody waits for a newcomer's transfer,
/// unless the others are too few, or none of them has the saved state.
Devices without_copying(const Fold& fold, const GroupSizes& sizes, const Devices& all) {
  std::optional<Stamp> best;
  for (const auto* device : all)
    if (is_of_last_view(fold, *device)) best = std::max(best, std::optional(device->ready->stamp));
  if (!best) return all;
  Devices rest;
  std::ranges::copy_if(all, std::back_inserter(rest), [&](const auto* device) {
    const bool copies = !is_of_last_view(fold, *device) && copies_first(*device->ready);
    return !copies || device->ready->stamp >= *best;
  });
  return rest.size() >= sizes.min && any_serves(fold, rest) ? rest : all;
}

/// Leaves out devices that cool down, newcomers that still copy the state, accused devices, and pairs that
/// cannot connect, if enough others remain.
void leave_out(const Fold& fold, const GroupSizes& sizes, NextView& next) {
  next.devices = without_cooling(fold, sizes, next.devices);
  next.devices = without_copying(fold, sizes, next.devices);
  next.accused = accused_among(fold, next.devices);
  Devices rest;
  for (const auto* device : next.devices)
    if (!next.is_accused(device->hello.device)) rest.push_back(device);
  if (rest.size() >= sizes.min) next.devices = std::move(rest);
  leave_out_unreachable(fold, sizes.min, next.devices);
}

/// Obstacle for the remaining devices: too few, or none has the saved state.
AdmissionError shortage(const Fold& fold, const NextView& next, const GroupSizes& sizes) {
  const Devices& devices = next.devices;
  if (devices.size() < sizes.min)
    return {.why = WhyNot::missing, .count = devices.size(), .wanted = sizes.min};
  const bool held = std::ranges::any_of(devices, [&](const auto* device) {
    return serves(fold, *device) && !next.is_accused(device->hello.device);
  });
  return held || !fold.rules.guard ? AdmissionError() : missing_state(fold, devices);
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

bool NextView::is_accused(const std::string& device) const {
  return std::ranges::binary_search(accused, device);
}

NextView next_view(const Fold& fold, bool only_live, const GroupSizes& sizes) {
  Devices all;
  for (const auto& entry : fold.devices) {
    if (only_live ? is_live(fold, entry.second) : is_ready(fold, entry.second)) all.push_back(&entry.second);
  }
  NextView next;
  Places places(fold, next, sizes);
  if (!formed(fold) || !places.assign(all)) {
    next.error = first_conflict(all, sizes);
    next.devices = std::move(all);
    if (!sizes.is_fixed()) keep_first(next.devices, sizes.max);
  }
  if (next.error) return next;
  leave_out(fold, places.sizes(), next);
  next.error = shortage(fold, next, places.sizes());
  return next;
}

bool is_of_last_view(const Fold& fold, const DeviceEntry& device) {
  const auto member = fold.view.sessions.find(device.hello.device);
  return member != fold.view.sessions.end() && member->second == device.session;
}

bool serves(const Fold& fold, const DeviceEntry& device) {
  return holds_saved(fold, device) || device.ready->rolls_back;
}

bool any_serves(const Fold& fold, const Devices& devices) {
  return std::ranges::any_of(devices, [&](const auto* device) { return serves(fold, *device); });
}

AdmissionError outside(const Fold& fold, const std::string& self) {
  const auto me = fold.devices.find(self);
  if (me == fold.devices.end() || fold.view.sessions.contains(self)) return {};
  if (fold.view.number == 0 || fold.view.members.empty()) return {};
  if (last_heard_of_all(fold) <= me->second.session) return {};  // one of them may have died before
  if (!view_intact(fold) || view_left(fold)) return {};
  Devices members;
  for (const auto& id : fold.view.members) members.push_back(&fold.devices.at(id));
  members.push_back(&me->second);
  if (auto why = first_conflict(members, me->second.hello.devices)) return why;
  if (!me->second.hello.devices.is_fixed()) return {};  // it joins them, or waits for a place
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
