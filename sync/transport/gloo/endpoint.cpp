#include "sync/transport/gloo/endpoint.h"

#include <pthread.h>

namespace rivulet::sync::gloo_door {

GlooEndpoint::GlooEndpoint(const GlooConfig& config, const Clock& clock, ConnectRequest request, Wake& wake)
    : config_(config),
      clock_(clock),
      view_(request.view),
      wake_(wake),
      request_(std::move(request)),
      peers_(view_.world()),
      channels_(*this),
      alarm_(clock) {
  request_.cancel = &cancel_;
  request_.on_arrival = [this](Lane lane) {
    if (!is_requested(lane)) alarm_.arrived();
  };
  comm_ = std::thread([this] { run(); });
  pthread_setname_np(comm_.native_handle(), "comm");
}

void GlooEndpoint::close() noexcept {
  cancel_.set();
  alarm_.stop();
  if (comm_.joinable()) comm_.join();
}

// ---- train thread ----

Progress GlooEndpoint::connected() {
  switch (stage_.load(std::memory_order_acquire)) {
    case Stage::connecting: return Progress::pending;
    case Stage::attached: return Progress::done;
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
  // Gloo's signature takes a mutable buffer, but a send only reads it.
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
  if (bytes.empty()) return ticket;  // not posted to Gloo; both sides know that nothing is sent
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
  if (auto posted = channels_.post(op, bytes, chunk); !posted) chunk_broken(op, posted.error().message);
  return ticket;
}

bool GlooEndpoint::wait(Ticket ticket) {
  const auto it = operations_.find(ticket.id);
  if (it == operations_.end()) return true;
  return channels_.wait_for(*it->second);
}

/// Makes the operation count for the deadline, which runs from the first operation that counts.
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
  RIVULET_CHECK(ticket.id != 0 && ticket.id <= last_ticket_, "a ticket of a different transport");
  const Stage stage = stage_.load(std::memory_order_acquire);
  const auto it = operations_.find(ticket.id);
  if (it == operations_.end()) return Progress::done;
  if (it->second->done.load(std::memory_order_acquire)) {
    operations_.erase(it);
    return Progress::done;
  }
  return stage == Stage::failed ? Progress::failed : Progress::pending;
}

/// Owners may never poll a ticket again; finished operations must not accumulate.
void GlooEndpoint::forget_finished() {
  if (operations_.size() < 256 || (operations_.size() & 63) != 0) return;
  std::erase_if(operations_,
                [](const auto& entry) { return entry.second->done.load(std::memory_order_acquire); });
}

// ---- the thread that waited ----

bool GlooEndpoint::chunk_done(Operation& op, std::size_t bytes) {
  (op.sending ? bytes_sent_[static_cast<std::size_t>(traffic_of(op.lane))] : bytes_received_) += bytes;
  last_progress_ns_ = clock_.now().time_since_epoch().count();
  if (!op.sending) peers_[op.peer].received_ns = last_progress_ns_.load();
  if (op.chunks_left.fetch_sub(1) != 1) return false;
  if (op.lane == Lane::shutdown && !op.sending) peers_[op.peer].announced_shutdown = true;
  if (op.phase.exchange(Operation::over) == Operation::counted) {
    --peers_[op.peer].waiting;
    --waiting_;
  }
  op.done.store(true, std::memory_order_release);
  return true;
}

void GlooEndpoint::chunk_broken(const Operation& op, const std::string& why) {
  if (op.lane == Lane::shutdown && !op.sending)
    peers_[op.peer].awaits_shutdown = false;  // it cannot arrive any more
  alarm_.broke(op.peer, why);
}

}  // namespace rivulet::sync::gloo_door
