#include <algorithm>
#include <cstring>
#include <iterator>

#include "sync/transport/memory_state.h"

namespace rivulet::sync::memory {
namespace {

// A link queues up to this much of what it cannot send immediately. Anything beyond is dropped and sent
// again. All connections of the link share the queue. A single factor models all losses measured with plain
// sockets between three and four devices (docs/RESULTS.md). It lengthens each message that overflows the
// queue after a message of a different connection.
constexpr Duration queue_of_a_link = std::chrono::milliseconds(200);
constexpr double next_to_others = 1.28;

// A send completes when the kernel has accepted its last byte, which may be before the link has sent it. Send
// buffer of a connection's socket, in bytes.
constexpr std::size_t held_by_socket = 128UL * 1024;

/// Bytes of a device's own link that a message takes. Its rate is that of Ethernet frames with TCP in them:
/// each 1448 bytes have 66 bytes of headers, and every other frame an acknowledgement of 66 bytes in the
/// opposite direction, which is as busy. Gloo adds a preamble before the bytes. Its two ends also announce
/// the send and the receive, each in a separate frame, with one acknowledgement.
std::size_t bytes_in_frames(std::size_t bytes) {
  constexpr std::size_t segment = 1448;
  constexpr std::size_t headers = 66;
  constexpr std::size_t head = 48;
  constexpr std::size_t said_besides = 2 * (head + headers) + headers;
  const std::size_t frames = (head + bytes + segment - 1) / segment;
  return said_besides + head + bytes + frames * headers + frames / 2 * headers;
}

/// The credit of a full token bucket: how long ago the link could have begun to send.
Duration burst_of(const MemoryNetwork::Link& link) {
  if (link.bytes_per_second <= 0) return Duration::zero();
  return from_seconds(static_cast<double>(link.burst_bytes) / link.bytes_per_second);
}

Duration longer(Duration alone) {
  return std::chrono::duration_cast<Duration>(alone * next_to_others);
}

}  // namespace

// ---- posting ----

Ticket Endpoint::send(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) {
  return post_send(peer, lane, bytes, false);
}
Ticket Endpoint::send_ahead(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) {
  return post_send(peer, lane, bytes, true);
}

Ticket Endpoint::post_send(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes, bool ahead) {
  const std::lock_guard lock(state_->mutex);
  const Ticket ticket = open(peer, bytes.size());
  if (failed_ || bytes.empty()) return ticket;
  const TimePoint now = clock_.now();
  Wire& wire = view_->wires[{spec_.rank, peer}];
  Channel& channel = view_->channels[{spec_.rank, peer, lane}];
  Message message;
  message.lost = state_->loss && state_->loss(spec_.rank, peer, lane, channel.sent);
  time(message, now, wire, peer, lane, bytes.size());
  ++channel.sent;
  counters_.sent(lane, bytes.size());

  Operation op{.sending = true, .ahead = ahead, .peer = peer, .lane = lane, .size = bytes.size()};
  op.message = message;
  if (message.taken_at > now) {
    if (!ahead) start_waiting(now);
    operations_.emplace(ticket.id, op);
    wake_.notify_at(message.taken_at);
  }
  if (Endpoint* to = view_->members[peer].endpoint; to != nullptr && !view_->members[spec_.rank].gone_at) {
    if (!message.lost) {
      wire.last_arrival = message.arrives_at;
      to->notify_due(message.here_at());
    }
    message.bytes.assign(bytes.begin(), bytes.end());
    channel.messages.push_back(std::move(message));
  }
  return ticket;
}

/// Sets when a message that is sent at `now` leaves and arrives. Its last byte passes the link between the
/// two, then the shared link of each end.
void Endpoint::time(Message& message, TimePoint now, Wire& wire, std::uint32_t peer, Lane lane,
                    std::size_t bytes) const {
  OwnLink* up = view_->members[spec_.rank].own;
  OwnLink* down = view_->members[peer].own;
  TimePoint begins = std::max(up != nullptr ? now - burst_of(up->link) : now, wire.free_at);
  if (up != nullptr) begins = std::max(begins, up->up_free_at);
  Duration takes = state_->time_on(state_->link, bytes);
  Duration latency = state_->link.latency;
  if (up != nullptr) {
    const Duration alone = state_->time_on(up->link, bytes_in_frames(bytes));
    const bool shared = up->up_free_at > now && up->up_to != peer;
    const bool overflows = shared && begins + alone - now > queue_of_a_link;
    takes = std::max(takes, overflows ? longer(alone) : alone);
    latency += up->link.latency;
    up->up_free_at = begins + takes;
    up->up_to = peer;
  }
  wire.free_at = begins + takes;
  message.sent_at = std::max(now, begins);
  message.left_at = message.taken_at = std::max(now, wire.free_at);
  if (up != nullptr)  // bytes buffered by the socket have left the sender, too
    message.taken_at =
        std::max(now, message.taken_at - state_->time_on(up->link, bytes_in_frames(held_by_socket)));
  message.arrives_at = std::max(message.left_at + latency, wire.last_arrival);
  if (down != nullptr && !message.lost) {
    const Duration last_mile = state_->time_on(down->link, bytes_in_frames(bytes));
    const TimePoint through = std::max(message.left_at, begins + last_mile) + latency;
    message.arrives_at = std::max(through + down->link.latency, wire.last_arrival);
    message.landing = std::make_shared<Landing>(message.arrives_at, last_mile);
    down->land(message.landing);
    message.landing->contributed_at = message.landing->ends_at;
    takes = std::max(takes, last_mile);
  }
  message.chunk = chunk_of(lane, takes, bytes);
}

void OwnLink::land(const std::shared_ptr<Landing>& landing) {
  std::erase_if(landings, [this](const auto& landed) {
    if (landed.use_count() > 1) return false;
    down_free_at = std::max(down_free_at, landed->free_at);
    return true;
  });
  auto at = std::ranges::upper_bound(landings, landing->reached_at, {},
                                     [](const auto& l) { return l->reached_at; });
  at = landings.insert(at, landing);
  TimePoint free_at = at == landings.begin() ? down_free_at : (*std::prev(at))->free_at;
  for (; at != landings.end(); ++at) {
    Landing& next = **at;
    const TimePoint begins = next.reached_at - next.takes;
    const bool overflows = free_at > begins && free_at + next.takes - begins > queue_of_a_link;
    free_at = std::max(free_at, begins - burst_of(link)) + (overflows ? longer(next.takes) : next.takes);
    next.free_at = free_at;
    next.ends_at = std::max(next.reached_at, free_at);
  }
}

Duration Endpoint::chunk_of(Lane lane, Duration takes, std::size_t bytes) const {
  const auto chunks =
      std::max(1.0, static_cast<double>(bytes) / static_cast<double>(state_->config.chunk_of(lane)));
  return from_seconds(to_seconds(takes) / chunks);
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
  if (!ahead) start_waiting(clock_.now());
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

/// The progress deadline runs from the first operation that is waited for.
void Endpoint::start_waiting(TimePoint now) {
  if (deadline_.waiting++ > 0) return;
  deadline_.last_progress = now;
  wake_at_deadline(now);
}

/// Keeps one alarm at a time. If there was progress before it rings, it sets the next.
void Endpoint::wake_at_deadline(TimePoint now) {
  if (deadline_.alarm_at > now) return;
  deadline_.alarm_at = deadline_.last_progress + state_->config.progress_deadline;
  wake_.notify_at(deadline_.alarm_at);
}

void Endpoint::promote(Ticket ticket) {
  const std::lock_guard lock(state_->mutex);
  if (const auto entered = find_entered(ticket.id); entered != entered_.end()) {
    if (entered->done || !entered->patient) return;
    entered->patient = false;
    start_waiting(clock_.now());
    return;
  }
  const auto it = operations_.find(ticket.id);
  if (it == operations_.end() || !it->second.ahead) return;
  it->second.ahead = false;
  start_waiting(clock_.now());
}

// ---- progress ----

Progress Endpoint::poll(Ticket ticket) {
  const std::lock_guard lock(state_->mutex);
  RIVULET_CHECK(ticket.id != 0 && ticket.id <= last_ticket_, "a ticket of a different transport");
  if (!failed_) look(clock_.now(), ticket.id);
  const auto entered = find_entered(ticket.id);
  const bool open = entered == entered_.end() ? operations_.contains(ticket.id) : !entered->done;
  if (!open) return Progress::done;
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
  if (ticket != 0) conclude(now, ticket);
  if (!failed_ && view_->gone > departed_.size()) look_for_the_dead(now);
  if (const auto it = find_entered(ticket); !failed_ && it != entered_.end()) conclude_gathered(now, *it);
  if (failed_ || deadline_.waiting == 0) return;
  if (now - deadline_.last_progress >= state_->config.progress_deadline) check_deadline(now);
  if (!failed_) wake_at_deadline(now);
}

/// Finishes one operation if its time has come. The receives of a lane finish in the order of posting.
void Endpoint::conclude(TimePoint now, std::uint64_t ticket) {
  const auto it = operations_.find(ticket);
  if (it == operations_.end()) return;
  if (it->second.sending) {
    if (now >= it->second.message.taken_at) finish(it, it->second.message.taken_at);
    return;
  }
  auto& queue = posted_[{it->second.peer, it->second.lane}];
  Channel& channel = view_->channels[{it->second.peer, spec_.rank, it->second.lane}];
  while (!queue.empty() && queue.front() <= ticket && !channel.messages.empty()) {
    Message& message = channel.messages.front();
    if (message.lost) return;
    if (message.here_at() > now) return wait_to_land(message);
    const auto first = operations_.find(queue.front());
    if (!deliver(message, first->second)) return;
    queue.pop_front();
    finish(first, message.here_at());
    channel.messages.pop_front();
  }
}

/// Notifies the owner again if the arrival was delayed after its wake was set.
void Endpoint::wait_to_land(const Message& message) {
  if (!message.landing || message.landing->contributed_at == message.landing->ends_at) return;
  message.landing->contributed_at = message.landing->ends_at;
  wake_.notify_at(message.landing->ends_at);
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
  if (op.lane == Lane::shutdown) announced_shutdown_.insert(op.peer);
  return true;
}

void Endpoint::finish(Operations::iterator it, TimePoint at) {
  if (!it->second.ahead) --deadline_.waiting;
  deadline_.last_progress = std::max(deadline_.last_progress, at);
  operations_.erase(it);
}

/// Messages of a dead peer that are on their way still count; then the peer is lost. A peer that has passed
/// the shutdown barrier may leave.
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
      if (!failed_) conclude(now, id);
    }
    if (failed_) return;
    const bool announced_shutdown = announced_shutdown_.contains(r) || received_bye_from(r, now);
    if (announced_shutdown && !waits_for(r) && !still_to_hear(r, now)) {
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

/// Chunks of a long message count as progress before its end.
TimePoint Endpoint::latest_chunk(const Flight& flight, Duration extra, TimePoint now) {
  const Duration chunk = flight.chunk;
  const TimePoint start = flight.sent_at + extra;
  if (chunk <= Duration::zero() || now < start + chunk) return TimePoint::min();
  return std::min(now, start + chunk * ((now - start) / chunk));
}

void Endpoint::check_deadline(TimePoint now) {
  const Operation* oldest = nullptr;
  std::uint64_t oldest_id = 0;
  for (const auto& [id, op] : operations_) {
    if (op.ahead) continue;
    if (op.sending) {
      if (!op.message.lost)
        deadline_.last_progress =
            std::max(deadline_.last_progress, latest_chunk(op.message, Duration::zero(), now));
    } else {
      for (const Message& m : view_->channels[{op.peer, spec_.rank, op.lane}].messages) {
        if (m.lost) break;
        const TimePoint seen = m.here_at() <= now ? m.here_at() : latest_chunk(m, state_->link.latency, now);
        deadline_.last_progress = std::max(deadline_.last_progress, seen);
      }
    }
    if (oldest == nullptr || id < oldest_id) {
      oldest = &op;
      oldest_id = id;
    }
  }
  const auto missing = latest_contribution(now);
  const Duration deadline = state_->config.progress_deadline;
  if (now - deadline_.last_progress < deadline) return;
  const std::uint32_t peer = oldest != nullptr ? oldest->peer : missing.value_or(rank());
  fail({ErrorCode::timed_out, "no byte received for " + std::to_string(to_seconds(deadline)) +
                                  " s while waiting for " + rank_name(spec_, peer)},
       static_cast<int>(peer));
}

Progress Endpoint::lose(std::uint32_t peer, const char* how) {
  const Member& member = view_->members[peer];
  if (member.lost && *member.lost == spec_.rank) how = "reported this device as lost";
  if (member.lost && *member.lost != spec_.rank) {
    return fail({member.lost_how,
                 rank_name(spec_, *member.lost) + " was lost, reported by " + rank_name(spec_, peer)},
                static_cast<int>(*member.lost));
  }
  return fail({ErrorCode::peer_lost, rank_name(spec_, peer) + " " + how}, static_cast<int>(peer));
}

/// Makes the error final. Reports it to all peers immediately, including the rank that caused it, so that it
/// spreads.
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

}  // namespace rivulet::sync::memory
