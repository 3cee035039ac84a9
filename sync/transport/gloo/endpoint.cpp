#include "sync/transport/gloo/endpoint.h"

#include <pthread.h>

#include <algorithm>

namespace rivulet::sync::gloo_door {
namespace {

/// Goes with the group.
class LaneInbox final : public Inbox {
 public:
  LaneInbox(const Group& group, const Operation& op)
      : group_(group), peer_(op.peer), tag_(static_cast<int>(op.lane)) {}
  [[nodiscard]] std::uint64_t arrived() const override { return group_.arrived(peer_, tag_); }
  [[nodiscard]] std::optional<std::string> broken() const override { return group_.broken(peer_); }

 private:
  const Group& group_;
  const std::uint32_t peer_;
  const int tag_;
};

}  // namespace

GlooEndpoint::GlooEndpoint(const GlooConfig& config, const Clock& clock, ConnectRequest request, Wake& wake)
    : config_(config),
      clock_(clock),
      view_(request.view),
      wake_(wake),
      request_(std::move(request)),
      peers_(view_.world()) {
  request_.cancel = &cancel_;
  request_.on_arrival = [this](Lane lane) {
    if (is_asked_for(lane)) return;
    const std::lock_guard lock(alarm_mutex_);
    arrived_ = true;
    alarm_changed_.notify_one();
  };
  comm_ = std::thread([this] { run(); });
  pthread_setname_np(comm_.native_handle(), "comm");
}

void GlooEndpoint::close() noexcept {
  cancel_.set();
  {
    const std::lock_guard lock(alarm_mutex_);
    stop_ = true;
    alarm_changed_.notify_one();
  }
  if (comm_.joinable()) comm_.join();
}

// ---- train thread ----

Progress GlooEndpoint::connected() {
  switch (stage_.load(std::memory_order_acquire)) {
    case Stage::connecting: return Progress::pending;
    case Stage::standing: return Progress::done;
    case Stage::failed: break;
  }
  return Progress::failed;
}

TransportCounters GlooEndpoint::counters() const noexcept {
  TransportCounters all{.bytes_received = bytes_received_};
  for (std::size_t kind = 0; kind < traffic_kinds; ++kind) {
    all.sent_for[kind] = bytes_sent_[kind];
    all.bytes_sent += all.sent_for[kind];
  }
  return all;
}

Ticket GlooEndpoint::send(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) {
  // Gloo takes what it sends as mutable too; it only reads it.
  return post(true, peer, lane, {const_cast<std::byte*>(bytes.data()), bytes.size()}, false);
}
Ticket GlooEndpoint::send_ahead(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) {
  return post(true, peer, lane, {const_cast<std::byte*>(bytes.data()), bytes.size()}, true);
}
Ticket GlooEndpoint::receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) {
  return post(false, peer, lane, bytes, false);
}
Ticket GlooEndpoint::receive_ahead(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) {
  return post(false, peer, lane, bytes, true);
}

Ticket GlooEndpoint::post(bool sending, std::uint32_t peer, Lane lane, std::span<std::byte> bytes,
                          bool ahead) {
  RIVULET_CHECK(peer < world() && peer != rank(), "a message needs another rank");
  RIVULET_CHECK(stage_ != Stage::connecting, "posted before connected() was done");
  const Ticket ticket{++last_ticket_};
  if (bytes.empty()) return ticket;  // Gloo never sees it; both sides know that nothing is coming
  forget_finished();
  auto& op = *operations_.emplace(ticket.id, std::make_unique<Operation>()).first->second;
  op.id = ticket.id;
  op.peer = peer;
  op.lane = lane;
  op.sending = sending;
  const std::size_t chunk = config_.transport.chunk_of(lane);
  op.chunks_left = static_cast<std::uint32_t>((bytes.size() + chunk - 1) / chunk);
  op.phase = Operation::ahead;
  if (!ahead) count(op);
  if (lane == Lane::shutdown && !sending) peers_[peer].awaits_shutdown = true;
  const std::lock_guard lock(post_mutex_);
  while (!bytes.empty() && group_ != nullptr) {
    const std::size_t n = std::min(bytes.size(), chunk);
    if (auto posted = post_chunk(op, bytes.first(n)); !posted) {
      chunk_broken(op, posted.error().message);
      break;
    }
    bytes = bytes.subspan(n);
  }
  return ticket;
}

Status GlooEndpoint::post_chunk(Operation& op, std::span<std::byte> bytes) {
  const int tag = static_cast<int>(op.lane);
  auto work = op.sending ? group_->send(op.peer, tag, bytes) : group_->receive(op.peer, tag, bytes);
  if (!work) return work.error();
  waiter_for(op).add(channel_of(op.peer, op.lane), {std::move(work).value(), &op, bytes.size()},
                     !is_asked_for(op.lane));
  return ok();
}

Waiter& GlooEndpoint::waiter_for(const Operation& op) {
  auto& waiter = waiters_[waiter_key(op)];
  if (waiter == nullptr)
    waiter = op.sending ? std::make_shared<Waiter>(*this, "comm-send")
                        : std::make_shared<Waiter>(*this, std::make_unique<LaneInbox>(*group_, op));
  return *waiter;
}

/// Kept alive by who waits in it: comm may take the group down meanwhile.
std::shared_ptr<Waiter> GlooEndpoint::waiter_of(const Operation& op) {
  const std::lock_guard lock(post_mutex_);
  const auto it = waiters_.find(waiter_key(op));
  return it == waiters_.end() ? nullptr : it->second;
}

bool GlooEndpoint::wait(Ticket ticket) {
  const auto it = operations_.find(ticket.id);
  if (it == operations_.end()) return true;
  const Operation& op = *it->second;
  const auto waiter = waiter_of(op);
  return waiter != nullptr && waiter->wait_for(channel_of(op.peer, op.lane), op);
}

/// From here on the operation counts. The deadline runs from the moment the first one does.
void GlooEndpoint::count(Operation& op) {
  std::uint8_t before = Operation::ahead;
  if (waiting_ == 0) last_progress_ns_ = clock_.now().time_since_epoch().count();
  ++waiting_;
  ++peers_[op.peer].waiting;
  if (op.phase.compare_exchange_strong(before, Operation::counted)) return;
  --peers_[op.peer].waiting;
  --waiting_;
}

void GlooEndpoint::promote(Ticket ticket) {
  const auto it = operations_.find(ticket.id);
  if (it != operations_.end() && it->second->phase == Operation::ahead) count(*it->second);
}

Progress GlooEndpoint::poll(Ticket ticket) {
  RIVULET_CHECK(ticket.id != 0 && ticket.id <= last_ticket_, "a ticket of another transport");
  const Stage stage = stage_.load(std::memory_order_acquire);
  const auto it = operations_.find(ticket.id);
  if (it == operations_.end()) return Progress::done;
  if (it->second->done.load(std::memory_order_acquire)) {
    operations_.erase(it);
    return Progress::done;
  }
  return stage == Stage::failed ? Progress::failed : Progress::pending;
}

/// Owners may never ask for a ticket again; finished ones must not pile up.
void GlooEndpoint::forget_finished() {
  if (operations_.size() < 256 || (operations_.size() & 63) != 0) return;
  std::erase_if(operations_,
                [](const auto& entry) { return entry.second->done.load(std::memory_order_acquire); });
}

// ---- the thread that waited ----

bool GlooEndpoint::chunk_done(Operation& op, std::size_t bytes) {
  (op.sending ? bytes_sent_[static_cast<std::size_t>(traffic_of(op.lane))] : bytes_received_) += bytes;
  last_progress_ns_ = clock_.now().time_since_epoch().count();
  if (!op.sending) peers_[op.peer].heard_ns = last_progress_ns_.load();
  if (op.chunks_left.fetch_sub(1) != 1) return false;
  if (op.lane == Lane::shutdown && !op.sending) peers_[op.peer].said_shutdown = true;
  if (op.phase.exchange(Operation::over) == Operation::counted) {
    --peers_[op.peer].waiting;
    --waiting_;
  }
  op.done.store(true, std::memory_order_release);
  return true;
}

void GlooEndpoint::chunk_broken(const Operation& op, const std::string& why) {
  if (op.lane == Lane::shutdown && !op.sending)
    peers_[op.peer].awaits_shutdown = false;  // it will not come any more
  const std::lock_guard lock(alarm_mutex_);
  breaks_.emplace(op.peer, why);
  alarm_ = true;
  alarm_changed_.notify_one();
}

}  // namespace rivulet::sync::gloo_door
