#include "sync/transport/memory_transport.h"

#include <algorithm>
#include <cstring>

#include "sync/transport/memory_state.h"

// One mutex guards the whole network. Only the owner of an endpoint touches its clock, error and posted
// buffers: send() copies bytes out of the sender, and the receiver's poll() copies them in.
namespace rivulet::sync {

using memory::Endpoint;
using memory::Member;
using memory::View;

MemoryNetwork::MemoryNetwork() : MemoryNetwork(Link{}, TransportConfig{}) {}
MemoryNetwork::MemoryNetwork(Link link, TransportConfig config) : state_(std::make_shared<State>()) {
  state_->link = link;
  state_->config = config;
}
MemoryNetwork::~MemoryNetwork() = default;

void MemoryNetwork::set_link(Link link) {
  const std::lock_guard lock(state_->mutex);
  state_->link = link;
}

void MemoryNetwork::set_own_link(std::string_view device_id, Link link) {
  const std::lock_guard lock(state_->mutex);
  RIVULET_CHECK(!state_->gathers, "gathering requires the same link for all pairs");
  state_->own_links[std::string(device_id)].link = link;
  for (auto& [token, view] : state_->views)
    for (Member& member : view.members) member.own = state_->own_link_of(member.id);
}

void MemoryNetwork::set_loss(Loss loss) {
  const std::lock_guard lock(state_->mutex);
  RIVULET_CHECK(!state_->gathers, "gathering requires a network without loss");
  state_->loss = std::move(loss);
}

void MemoryNetwork::gather(std::uint32_t check_every) {
  const std::lock_guard lock(state_->mutex);
  RIVULET_CHECK(!state_->loss && state_->own_links.empty(),
                "gathering requires equal links without packet loss");
  state_->gathers = std::make_shared<ShareCheck>(check_every);
}

void MemoryNetwork::kill(std::string_view device_id) {
  const std::lock_guard lock(state_->mutex);
  state_->dead.emplace(device_id);
  for (auto& [token, view] : state_->views) {
    for (Member& member : view.members) {
      if (member.id == device_id && member.endpoint != nullptr && !member.gone_at)
        member.endpoint->leave_locked();
    }
    for (Member& member : view.members) {
      if (member.endpoint != nullptr) member.endpoint->wake().notify();
    }
  }
}

void MemoryNetwork::restart(std::string_view device_id) {
  const std::lock_guard lock(state_->mutex);
  if (const auto dead = state_->dead.find(device_id); dead != state_->dead.end()) state_->dead.erase(dead);
}

Connect MemoryNetwork::connect_for(const Clock& clock) {
  return [state = state_, &clock](const ViewSpec& spec, AddressBook&,
                                  Wake& wake) -> Result<std::unique_ptr<Transport>> {
    RIVULET_CHECK(spec.rank < spec.world(), "own rank is not in the view");
    return std::unique_ptr<Transport>(std::make_unique<Endpoint>(state, spec, clock, wake));
  };
}

memory::View& MemoryNetwork::State::join(const ViewSpec& spec, memory::Endpoint* endpoint) {
  View& view = views[spec.token];
  if (view.members.empty()) {
    if (gathers) view.work = std::make_unique<SharedWork>(gathers);
    view.members.resize(spec.world());
    for (std::uint32_t r = 0; r < spec.world(); ++r) {
      view.members[r].id = spec.members[r];
      view.members[r].own = own_link_of(spec.members[r]);
    }
  }
  RIVULET_CHECK(view.members.size() == spec.world(), "two views with the same token");
  Member& me = view.members[spec.rank];
  RIVULET_CHECK(!me.joined, "a rank connects once to a view");
  me.endpoint = endpoint;
  me.joined = true;
  ++view.joined;
  return view;
}

/// Removes views without endpoints that were complete once or are not the newest.
void MemoryNetwork::State::forget_finished_views() {
  for (auto it = views.begin(); it != views.end();) {
    const bool held = std::any_of(it->second.members.begin(), it->second.members.end(),
                                  [](const Member& m) { return m.endpoint != nullptr; });
    const bool over = it->second.complete() || std::next(it) != views.end();
    it = !held && over ? views.erase(it) : std::next(it);
  }
}

namespace memory {

// ---- joining and leaving ----

Endpoint::Endpoint(std::shared_ptr<MemoryNetwork::State> state, const ViewSpec& spec, const Clock& clock,
                   Wake& wake)
    : state_(std::move(state)), spec_(spec), clock_(clock), wake_(wake) {
  const std::lock_guard lock(state_->mutex);
  state_->dead.erase(spec.members[spec.rank]);
  view_ = &state_->join(spec, this);
  joined_at_ = clock.now();
  deadline_.last_progress = joined_at_;
  Member& me = view_->members[spec.rank];
  me.joined_at = joined_at_;
  if (!view_->complete()) {
    wake_.notify_at(joined_at_ + state_->config.progress_deadline);
    return;
  }
  view_->connected_at = joined_at_;
  for (const Member& m : view_->members) view_->connected_at = std::max(view_->connected_at, m.joined_at);
  for (const Member& m : view_->members) {
    if (m.endpoint != nullptr) m.endpoint->notify_due(view_->connected_at);
  }
}

Endpoint::~Endpoint() {
  const std::lock_guard lock(state_->mutex);
  leave_locked();
  view_->members[spec_.rank].endpoint = nullptr;
  state_->forget_finished_views();
}

void Endpoint::close() noexcept {
  const std::lock_guard lock(state_->mutex);
  leave_locked();
}

/// Peers see a closed socket from now on, after the messages on their way have arrived.
void Endpoint::leave_locked() {
  Member& me = view_->members[spec_.rank];
  if (me.gone_at) return;
  me.gone_at = clock_.now();
  ++view_->gone;
  for (std::uint32_t r = 0; r < world(); ++r) {
    Endpoint* peer = view_->members[r].endpoint;
    if (r != spec_.rank && peer != nullptr) peer->notify_due(peer->gone_visible_at(spec_.rank));
  }
}

TimePoint Endpoint::gone_visible_at(std::uint32_t peer) const {
  const Member& member = view_->members[peer];
  const TimePoint closed = std::max(*member.gone_at + state_->link.latency, member.last_contributed);
  const auto wire = view_->wires.find({peer, spec_.rank});
  if (wire == view_->wires.end()) return closed;
  TimePoint last = std::max(closed, wire->second.last_arrival);
  for (auto at = view_->channels.lower_bound({peer, spec_.rank, Lane{}}); at != view_->channels.end(); ++at) {
    const auto& [from, to, lane] = at->first;
    if (from != peer || to != spec_.rank) break;
    for (const Message& message : at->second.messages)
      if (!message.lost) last = std::max(last, message.here_at());
  }
  return last;
}

/// Notifies the owner when a change becomes visible, immediately if its clock has reached that time.
void Endpoint::notify_due(TimePoint at) {
  if (at <= clock_.now()) {
    wake_.notify();
  } else {
    wake_.notify_at(at);
  }
}

Progress Endpoint::connected() {
  const std::lock_guard lock(state_->mutex);
  return connected_locked();
}

Progress Endpoint::connected_locked() {
  if (failed_) return Progress::failed;
  if (connected_) return Progress::done;
  const TimePoint now = clock_.now();
  if (view_->complete() && now >= view_->connected_at) {
    connected_ = true;
    deadline_.last_progress = now;
    return Progress::done;
  }
  for (std::uint32_t r = 0; r < world(); ++r) {
    const Member& m = view_->members[r];
    if (m.gone_at || (!m.joined && state_->dead.contains(m.id)))
      return lose(r, "died while the group was connecting");
  }
  if (now - joined_at_ >= state_->config.progress_deadline) return miss_members();
  return Progress::pending;
}

Progress Endpoint::miss_members() {
  std::string missing;
  int first = -1;
  for (std::uint32_t r = 0; r < world(); ++r) {
    const Member& m = view_->members[r];
    if (m.joined) continue;
    if (first < 0) first = static_cast<int>(r);
    missing += (missing.empty() ? "" : ", ") + rank_name(spec_, r);
  }
  return fail({ErrorCode::timed_out, "connecting took too long, still missing: " + missing}, first);
}

}  // namespace memory
}  // namespace rivulet::sync
