#include "sync/collective/memory_transport.h"

#include <algorithm>
#include <cstring>

#include "sync/collective/memory_state.h"

// One mutex guards the whole network. An endpoint's own clock, error and posted buffers are touched by its
// owner only: bytes are copied out of the sender at send() and into the receiver in its own poll().
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

void MemoryNetwork::set_loss(Loss loss) {
  const std::lock_guard lock(state_->mutex);
  state_->loss = std::move(loss);
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
    view.members.resize(spec.world());
    for (std::uint32_t r = 0; r < spec.world(); ++r) view.members[r].id = spec.members[r];
  }
  RIVULET_CHECK(view.members.size() == spec.world(), "two views of one token");
  Member& me = view.members[spec.rank];
  RIVULET_CHECK(!me.joined, "a rank connects once to a view");
  me.endpoint = endpoint;
  me.joined = true;
  ++view.joined;
  return view;
}

/// A view nobody holds is over when all have been there, or when a newer one exists.
void MemoryNetwork::State::forget_finished_views() {
  for (auto it = views.begin(); it != views.end();) {
    const bool held = std::any_of(it->second.members.begin(), it->second.members.end(),
                                  [](const Member& m) { return m.endpoint != nullptr; });
    const bool over = it->second.complete() || std::next(it) != views.end();
    it = !held && over ? views.erase(it) : std::next(it);
  }
}

namespace memory {

// ---- joining and leaving
// ------------------------------------------------------------------------------------------

Endpoint::Endpoint(std::shared_ptr<MemoryNetwork::State> state, const ViewSpec& spec, const Clock& clock,
                   Wake& wake)
    : state_(std::move(state)), spec_(spec), clock_(clock), wake_(wake) {
  const std::lock_guard lock(state_->mutex);
  state_->dead.erase(spec.members[spec.rank]);  // it has been started again
  view_ = &state_->join(spec, this);
  joined_at_ = clock.now();
  last_progress_ = joined_at_;
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

/// From now on the others see a closed socket, after what is still on its way has arrived.
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
  const TimePoint closed = *member.gone_at + state_->link.latency;
  const auto wire = view_->wires.find({peer, spec_.rank});
  return wire == view_->wires.end() ? closed : std::max(closed, wire->second.last_arrival);
}

/// A sleeping owner is told when there will be something to see; one whose clock is already there, at once.
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
    last_progress_ = now;
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

// ---- posting
// ------------------------------------------------------------------------------------------------------

Ticket Endpoint::send(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) {
  const std::lock_guard lock(state_->mutex);
  const Ticket ticket = open(peer, bytes.size());
  if (failed_ || bytes.empty()) return ticket;
  const TimePoint now = clock_.now();
  Wire& wire = view_->wires[{spec_.rank, peer}];
  Channel& channel = view_->channels[{spec_.rank, peer, lane}];
  Message message;
  message.lost = state_->loss && state_->loss(spec_.rank, peer, lane, channel.sent);
  message.sent_at = std::max(now, wire.free_at);
  message.left_at = message.sent_at + state_->time_on_wire(bytes.size());
  message.arrives_at = std::max(message.left_at + state_->link.latency, wire.last_arrival);
  wire.free_at = message.left_at;
  ++channel.sent;
  counters_.bytes_sent += bytes.size();

  Operation op{.sending = true, .peer = peer, .lane = lane, .size = bytes.size()};
  op.message = message;
  if (message.left_at > now) {
    start_waiting(op, now);
    operations_.emplace(ticket.id, op);
    wake_.notify_at(message.left_at);
  }
  if (Endpoint* to = view_->members[peer].endpoint; to != nullptr && !view_->members[spec_.rank].gone_at) {
    if (!message.lost) {
      wire.last_arrival = message.arrives_at;
      to->notify_due(message.arrives_at);
    }
    message.bytes.assign(bytes.begin(), bytes.end());
    channel.messages.push_back(std::move(message));
  }
  return ticket;
}

Ticket Endpoint::receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) {
  return post_receive(peer, lane, bytes, false);
}
Ticket Endpoint::receive_ahead(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) {
  return post_receive(peer, lane, bytes, true);
}

Ticket Endpoint::post_receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes, bool ahead) {
  const std::lock_guard lock(state_->mutex);
  const Ticket ticket = open(peer, bytes.size());
  if (failed_ || bytes.empty()) return ticket;
  Operation op{
      .sending = false, .ahead = ahead, .peer = peer, .lane = lane, .size = bytes.size(), .into = bytes};
  if (!ahead) start_waiting(op, clock_.now());
  operations_.emplace(ticket.id, op);
  posted_[{peer, lane}].push_back(ticket.id);
  return ticket;
}

Ticket Endpoint::open(std::uint32_t peer, std::size_t size) {
  RIVULET_CHECK(peer < world() && peer != spec_.rank, "a message needs another rank");
  const Ticket ticket{++last_ticket_};
  if (connected_locked() == Progress::pending) RIVULET_CHECK(false, "posted before connected() was done");
  if (failed_ && size > 0) operations_.emplace(ticket.id, Operation{.peer = peer, .size = size});
  return ticket;
}

/// The progress deadline runs from the moment the first operation is waited for.
void Endpoint::start_waiting(Operation& op, TimePoint now) {
  op.ahead = false;
  if (waiting_++ == 0) {
    last_progress_ = now;
    wake_.notify_at(now + state_->config.progress_deadline);
  }
}

void Endpoint::promote(Ticket ticket) {
  const std::lock_guard lock(state_->mutex);
  const auto it = operations_.find(ticket.id);
  if (it == operations_.end() || !it->second.ahead) return;
  start_waiting(it->second, clock_.now());
}

// ---- progress
// -----------------------------------------------------------------------------------------------------

Progress Endpoint::poll(Ticket ticket) {
  const std::lock_guard lock(state_->mutex);
  RIVULET_CHECK(ticket.id != 0 && ticket.id <= last_ticket_, "a ticket of another transport");
  if (!failed_) look(clock_.now(), ticket.id);
  if (!operations_.contains(ticket.id)) return Progress::done;
  return failed_ ? Progress::failed : Progress::pending;
}

bool Endpoint::healthy() {
  const std::lock_guard lock(state_->mutex);
  if (!failed_ && connected_) look(clock_.now(), 0);
  return !failed_;
}

void Endpoint::look(TimePoint now, std::uint64_t ticket) {
  if (view_->members[spec_.rank].gone_at) {
    fail({ErrorCode::peer_lost, "this device has left the network"}, static_cast<int>(spec_.rank));
    return;
  }
  if (ticket != 0) settle(now, ticket);
  if (!failed_ && view_->gone > departed_.size()) look_for_the_dead(now);
  if (!failed_ && waiting_ > 0 && now - last_progress_ >= state_->config.progress_deadline)
    check_deadline(now);
}

/// Finishes one operation if its time has come. Receives of a lane finish in the order they were posted.
void Endpoint::settle(TimePoint now, std::uint64_t ticket) {
  const auto it = operations_.find(ticket);
  if (it == operations_.end()) return;
  if (it->second.sending) {
    if (now >= it->second.message.left_at) finish(it, it->second.message.left_at);
    return;
  }
  auto& queue = posted_[{it->second.peer, it->second.lane}];
  Channel& channel = view_->channels[{it->second.peer, spec_.rank, it->second.lane}];
  while (!queue.empty() && queue.front() <= ticket && !channel.messages.empty()) {
    Message& message = channel.messages.front();
    if (message.lost || message.arrives_at > now) return;
    const auto first = operations_.find(queue.front());
    if (!deliver(message, first->second)) return;
    queue.pop_front();
    finish(first, message.arrives_at);
    channel.messages.pop_front();
  }
}

bool Endpoint::deliver(const Message& message, const Operation& op) {
  if (message.bytes.size() != op.size) {
    fail({ErrorCode::protocol, rank_name(spec_, op.peer) + " sent " + std::to_string(message.bytes.size()) +
                                   " bytes where " + std::to_string(op.size) + " were expected"},
         static_cast<int>(op.peer));
    return false;
  }
  std::memcpy(op.into.data(), message.bytes.data(), op.size);
  counters_.bytes_received += op.size;
  if (op.lane == Lane::bye) said_bye_.insert(op.peer);
  return true;
}

void Endpoint::finish(Operations::iterator it, TimePoint at) {
  if (!it->second.ahead) --waiting_;
  last_progress_ = std::max(last_progress_, at);
  operations_.erase(it);
}

/// What was on its way from a dead peer still counts; after that its silence is final. A peer that has said
/// goodbye may go.
void Endpoint::look_for_the_dead(TimePoint now) {
  for (std::uint32_t r = 0; r < world() && !failed_; ++r) {
    if (r == spec_.rank || !view_->members[r].gone_at || departed_.contains(r)) continue;
    if (now < gone_visible_at(r)) continue;
    std::vector<std::uint64_t> open;
    for (const auto& [id, op] : operations_) {
      if (op.peer == r && !op.sending) open.push_back(id);
    }
    std::sort(open.begin(), open.end());
    for (const auto id : open) {
      if (!failed_) settle(now, id);
    }
    if (failed_) return;
    if (said_bye_.contains(r) && !waits_for(r)) {
      departed_.insert(r);
    } else {
      lose(r, "closed its connection");
    }
  }
}

bool Endpoint::waits_for(std::uint32_t peer) const {
  return std::any_of(operations_.begin(), operations_.end(), [&](const auto& entry) {
    const Operation& op = entry.second;
    return op.peer == peer && !op.sending && !op.ahead;
  });
}

/// Chunks of a long message are progress long before its end.
TimePoint Endpoint::latest_chunk(const Message& message, Duration extra, TimePoint now) const {
  if (message.lost) return TimePoint::min();
  const Duration chunk = state_->time_on_wire(state_->config.chunk_bytes);
  const TimePoint start = message.sent_at + extra;
  if (chunk <= Duration::zero() || now < start + chunk) return TimePoint::min();
  return std::min(now, start + chunk * ((now - start) / chunk));
}

void Endpoint::check_deadline(TimePoint now) {
  const Operation* oldest = nullptr;
  std::uint64_t oldest_id = 0;
  for (const auto& [id, op] : operations_) {
    if (op.ahead) continue;
    if (op.sending) {
      last_progress_ = std::max(last_progress_, latest_chunk(op.message, Duration::zero(), now));
    } else {
      for (const Message& m : view_->channels[{op.peer, spec_.rank, op.lane}].messages) {
        if (m.lost) break;
        const TimePoint seen =
            m.arrives_at <= now ? m.arrives_at : latest_chunk(m, state_->link.latency, now);
        last_progress_ = std::max(last_progress_, seen);
      }
    }
    if (oldest == nullptr || id < oldest_id) {
      oldest = &op;
      oldest_id = id;
    }
  }
  const Duration deadline = state_->config.progress_deadline;
  if (now - last_progress_ < deadline) {
    wake_.notify_at(last_progress_ + deadline);
    return;
  }
  const std::uint32_t peer = oldest->peer;
  fail({ErrorCode::timed_out, "no byte for " + std::to_string(to_seconds(deadline)) +
                                  " s while waiting for " + rank_name(spec_, peer)},
       static_cast<int>(peer));
}

Progress Endpoint::lose(std::uint32_t peer, const char* how) {
  const Member& member = view_->members[peer];
  if (member.lost && *member.lost == spec_.rank) how = "gave this device up as lost";
  if (member.lost && *member.lost != spec_.rank) {
    return fail(
        {member.lost_how, rank_name(spec_, *member.lost) + " was lost, says " + rank_name(spec_, peer)},
        static_cast<int>(*member.lost));
  }
  return fail({ErrorCode::peer_lost, rank_name(spec_, peer) + " " + how}, static_cast<int>(peer));
}

/// Final. The others learn of it at once, and whom it is about, so that an error runs round.
Progress Endpoint::fail(Error error, int rank) {
  failed_ = true;
  Member& me = view_->members[spec_.rank];
  if (!me.gone_at && rank >= 0) {
    me.lost = static_cast<std::uint32_t>(rank);
    me.lost_how = error.code;
  }
  error_ = std::move(error);
  lost_rank_ = rank;
  leave_locked();
  return Progress::failed;
}

}  // namespace memory
}  // namespace rivulet::sync
