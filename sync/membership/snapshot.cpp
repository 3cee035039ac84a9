#include "sync/membership/snapshot.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include "core/digest.h"

namespace rivulet::sync::membership {

namespace {

using Snapshot = nlohmann::json;

Snapshot json_of(const Stamp& stamp) {
  return Snapshot::array({stamp.lineage, stamp.step});
}
Stamp stamp_of(const Snapshot& j) {
  return {j.at(0).get<std::uint64_t>(), j.at(1).get<std::uint64_t>()};
}

/// Omits the configuration, which is stored once per hash. A device whose configuration differs under the
/// same hash stores its own.
Snapshot json_of(const Hello& h) {
  return {{"device", h.device},
          {"nonce", h.nonce},
          {"host", h.host},
          {"pid", h.pid},
          {"devices", {h.devices.min, h.devices.wanted, h.devices.max}},
          {"config_hash", h.config_hash},
          {"partitions", h.partitions},
          {"new_run", h.new_run}};
}
Hello hello_of(const Snapshot& j, const Snapshot& configs) {
  Hello h;
  h.device = j.at("device").get<std::string>();
  h.nonce = j.at("nonce").get<std::string>();
  h.host = j.at("host").get<std::string>();
  h.pid = j.at("pid").get<std::int64_t>();
  const Snapshot& sizes = j.at("devices");
  h.devices = {sizes.at(0).get<std::uint32_t>(), sizes.at(1).get<std::uint32_t>(),
               sizes.at(2).get<std::uint32_t>()};
  h.config_hash = j.at("config_hash").get<std::string>();
  const auto own = j.find("config");
  h.config = (own != j.end() ? *own : configs.at(h.config_hash)).get<std::map<std::string, std::string>>();
  h.partitions = j.at("partitions").get<std::vector<std::string>>();
  h.new_run = j.at("new_run").get<bool>();
  return h;
}

Snapshot json_of(const Copying& copy) {
  return Snapshot::array({copy.bytes, copy.donor, copy.failed});
}
Copying copying_of(const Snapshot& j) {
  return {j.at(0).get<std::uint64_t>(), j.at(1).get<std::string>(), j.at(2).get<std::uint64_t>()};
}

Snapshot json_of(const DeviceEntry& d) {
  Snapshot j = {{"session", d.session},
                {"hello", json_of(d.hello)},
                {"before", {d.before.session, d.before.host, d.before.pid, d.before.over}},
                {"past_nonces", d.past_nonces},
                {"swaps", d.swaps},
                {"contested", d.contested},
                {"heard", d.last_seen}};
  if (d.left) j["left"] = *d.left;
  if (d.ready)
    j["ready"] = {d.ready_at,      d.ready->view,      json_of(d.ready->stamp), d.ready->digest,
                  d.ready->reason, d.ready->rows,      d.ready->limited,        d.ready->rolls_back,
                  d.ready->lost,   d.ready->unreached, d.ready->accuses,        json_of(d.ready->copy),
                  d.ready->copied, d.copy_at};
  if (d.left_for != WhyNot::none) j["left_for"] = name_of(d.left_for);
  if (d.left_in_order) j["in_order"] = true;
  if (d.limited) j["limited"] = true;
  if (!d.breaks.empty()) j["breaks"] = d.breaks;
  if (d.expelled_ms) j["expelled"] = {*d.expelled_ms, d.expelled_again};
  return j;
}
DeviceEntry device_of(const Snapshot& j, const Snapshot& configs) {
  DeviceEntry d;
  d.session = j.at("session").get<std::int64_t>();
  d.hello = hello_of(j.at("hello"), configs);
  const Snapshot& before = j.at("before");
  d.before = {before.at(0).get<std::int64_t>(), before.at(1).get<std::string>(),
              before.at(2).get<std::int64_t>(), before.at(3).get<bool>()};
  d.past_nonces = j.at("past_nonces").get<std::vector<std::string>>();
  d.swaps = j.at("swaps").get<std::vector<std::int64_t>>();
  d.contested = j.at("contested").get<std::int64_t>();
  d.last_seen = j.at("heard").get<std::int64_t>();
  if (const auto left = j.find("left"); left != j.end()) d.left = left->get<std::string>();
  if (const auto cause = j.find("left_for"); cause != j.end())
    d.left_for = why_not_of(cause->get<std::string>());
  d.left_in_order = j.value("in_order", false);
  d.limited = j.value("limited", false);
  if (const auto breaks = j.find("breaks"); breaks != j.end())
    d.breaks = breaks->get<std::vector<std::int64_t>>();
  if (const auto expelled = j.find("expelled"); expelled != j.end()) {
    d.expelled_ms = expelled->at(0).get<std::int64_t>();
    d.expelled_again = expelled->at(1).get<bool>();
  }
  if (const auto ready = j.find("ready"); ready != j.end()) {
    d.ready_at = ready->at(0).get<std::int64_t>();
    d.ready = Ready{d.hello.device,
                    d.session,
                    ready->at(1).get<std::uint64_t>(),
                    stamp_of(ready->at(2)),
                    ready->at(3).get<std::string>(),
                    ready->at(4).get<std::string>(),
                    ready->at(5).get<std::uint64_t>(),
                    ready->at(6).get<bool>(),
                    ready->at(7).get<bool>(),
                    ready->at(8).get<std::vector<std::string>>(),
                    ready->at(9).get<std::vector<std::string>>(),
                    ready->at(10).get<std::vector<std::string>>(),
                    copying_of(ready->at(11)),
                    ready->at(12).get<std::vector<std::string>>()};
    d.copy_at = ready->at(13).get<std::int64_t>();
  }
  return d;
}

/// Omits the configuration, which is stored with a device, and claims equal to the device's.
Snapshot json_of(const ClosedView& v, const Fold& fold) {
  Snapshot j = {{"number", v.number},          {"token", v.token},        {"members", v.members.list()},
                {"sessions", v.sessions},      {"digest", v.digest},      {"target", json_of(v.target)},
                {"holders", v.holders.list()}, {"confirmed", v.confirmed}};
  j["config_hash"] = v.config_hash;
  j["claims"] = Snapshot::object();
  for (std::size_t rank = 0; rank < v.members.size(); ++rank) {
    const auto device = fold.devices.find(v.members[rank]);
    if (device == fold.devices.end() || device->second.hello.partitions != v.owners[rank])
      j["claims"][v.members[rank]] = v.owners[rank];
  }
  if (v.counts_from) j["counts_from"] = {v.counts_from->step, v.counts_from->rows};
  if (v.ended) j["ended"] = true;
  return j;
}
ClosedView view_of(const Snapshot& j) {
  ClosedView v;
  v.number = j.at("number").get<std::uint64_t>();
  v.token = j.at("token").get<std::uint64_t>();
  v.members = j.at("members").get<std::vector<std::string>>();
  v.sessions = j.at("sessions").get<std::map<std::string, std::int64_t>>();
  v.digest = j.at("digest").get<std::string>();
  v.target = stamp_of(j.at("target"));
  v.holders = j.at("holders").get<std::vector<std::string>>();
  v.holder_ranks = ranks_of(v.holders, v.members);
  v.confirmed = j.at("confirmed").get<std::int64_t>();
  v.config_hash = j.at("config_hash").get<std::string>();
  if (const auto from = j.find("counts_from"); from != j.end())
    v.counts_from = Clocks{from->at(0).get<std::uint64_t>(), from->at(1).get<std::uint64_t>()};
  v.ended = j.value("ended", false);
  return v;
}

/// Owners: the stored claims of a member, else its device's claims.
void add_owners(Fold& fold, const Snapshot& written) {
  std::vector<std::vector<std::string>> owners;
  for (const auto& id : fold.view.members) {
    auto& own = owners.emplace_back();
    const auto device = fold.devices.find(id);
    if (const auto claims = written.find(id); claims != written.end())
      own = claims->get<std::vector<std::string>>();
    else if (device != fold.devices.end())
      own = device->second.hello.partitions;
  }
  fold.view.owners = std::move(owners);
}

Fold read_fold(const Snapshot& j) {
  Fold fold;
  for (const auto& [id, device] : j.at("devices").items())
    fold.devices.emplace(id, device_of(device, j.at("configs")));
  fold.view = view_of(j.at("view"));
  add_owners(fold, j.at("view").at("claims"));
  fold.committed = {stamp_of(j.at("committed").at(0)), j.at("committed").at(1).get<std::string>()};
  fold.committed_by = j.at("committed_by").get<std::vector<std::string>>();
  for (const auto& state : j.at("saved"))
    fold.saved.emplace(Committed{stamp_of(state.at(0)), state.at(1).get<std::string>()},
                       state.at(2).get<std::vector<std::string>>());
  const Snapshot& run = j.at("run");
  fold.run = {run.at(0).get<std::uint64_t>(), run.at(1).get<std::int64_t>(), run.at(2).get<std::uint64_t>()};
  fold.stopped_at = j.at("stopped_at").get<std::int64_t>();
  fold.last_hello = j.at("last_hello").get<std::int64_t>();
  const Snapshot& asked = j.at("asked");
  fold.asked = {asked.at(0).get<std::int64_t>(), asked.at(1).get<std::int64_t>(), asked.at(2).get<bool>()};
  fold.time_ms = j.at("time_ms").get<std::int64_t>();
  fold.snapped_at = j.at("snapped_at").get<std::int64_t>();
  fold.next_offset = j.at("next_offset").get<std::int64_t>();
  return fold;
}

/// Checks invariants that the rest of the fold assumes.
bool hangs_together(const Fold& fold) {
  const auto known = [&](const std::string& id) {
    return fold.devices.contains(id) && fold.view.sessions.contains(id);
  };
  const auto& members = fold.view.members;
  return members.size() == fold.view.sessions.size() && std::all_of(members.begin(), members.end(), known) &&
         std::adjacent_find(members.begin(), members.end(), std::greater_equal<>()) == members.end() &&
         std::all_of(fold.devices.begin(), fold.devices.end(), [&](const auto& entry) {
           const DeviceEntry& device = entry.second;
           constexpr std::int64_t far = std::int64_t{1} << 62;  // limits for time arithmetic
           const auto is_time = [](std::int64_t ms) { return -far < ms && ms < far; };
           const bool times = std::ranges::all_of(device.swaps, is_time) &&
                              std::ranges::all_of(device.breaks, is_time) && is_time(fold.time_ms) &&
                              is_time(fold.asked.ms) && is_time(device.expelled_ms.value_or(0));
           return entry.first == device.hello.device && times && device.hello.devices.is_valid() &&
                  device.breaks.size() <= breaks_max && device.swaps.size() <= swaps_max &&
                  device.past_nonces.size() <= past_nonces_max && device.session >= 0 &&
                  (device.copy_at < 0 || !device.ready->copy.donor.empty()) &&
                  device.session < fold.next_offset;
         });
}

/// Rejects fractions and exponents: a fold has none, and converting a too large floating-point number to an
/// integer is undefined.
Snapshot parse_whole_numbers(const std::string& text) {
  bool whole = true;
  const Snapshot j = Snapshot::parse(text, [&](int, Snapshot::parse_event_t, const Snapshot& value) {
    whole = whole && !value.is_number_float();
    return true;
  });
  return whole ? j : Snapshot();
}

}  // namespace

std::string snapshot_of(const Fold& fold) {
  Snapshot j = {{"view", json_of(fold.view, fold)},
                {"committed", {json_of(fold.committed.stamp), fold.committed.digest}},
                {"committed_by", fold.committed_by},
                {"saved", Snapshot::array()},
                {"run", {fold.run.number, fold.run.began, fold.run.views_before}},
                {"stopped_at", fold.stopped_at},
                {"last_hello", fold.last_hello},
                {"asked", {fold.asked.up_to, fold.asked.ms, fold.asked.due}},
                {"time_ms", fold.time_ms},
                {"snapped_at", fold.snapped_at},
                {"next_offset", fold.next_offset},
                {"devices", Snapshot::object()},
                {"configs", Snapshot::object()}};
  for (const auto& [state, disks] : fold.saved)
    j["saved"].push_back({json_of(state.stamp), state.digest, disks});
  for (const auto& [id, device] : fold.devices) {
    const Snapshot config = device.hello.config;
    const Snapshot& shared = j["configs"].emplace(device.hello.config_hash, config).first.value();
    j["devices"][id] = json_of(device);
    if (config != shared) j["devices"][id]["hello"]["config"] = config;
  }
  return j.dump(-1, ' ', false, Snapshot::error_handler_t::replace);
}

std::string snapshot_hash(const std::string& text) {
  return rivulet::digest_of(std::as_bytes(std::span(text))).hex();
}

bool is_snapshot_of(const Snap& snap, const Fold& fold) {
  return snapshot_hash(snap.fold) == snap.hash && snapshot_of(fold) == snap.fold;
}

std::optional<Fold> fold_of(const Snap& snap) {
  if (snapshot_hash(snap.fold) != snap.hash) return std::nullopt;
  try {  // the library throws on a missing field or a wrong type
    const Snapshot j = parse_whole_numbers(snap.fold);
    Fold fold = read_fold(j);
    // Must give the same text: then nothing was cut, duplicated or misread.
    if (!hangs_together(fold) || snapshot_of(fold) != snap.fold) return std::nullopt;
    return fold;
  } catch (const Snapshot::exception&) {
    return std::nullopt;
  }
}

}  // namespace rivulet::sync::membership
