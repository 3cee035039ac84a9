#include <algorithm>

#include "sync/transport/memory_state.h"

// Models the effect of all-to-all messages on clocks, counters and deadlines, without the messages. Valid
// because a rank sends the same bytes to all peers, over equal links, in one exchange after another.
namespace rivulet::sync::memory {

// ---- an exchange ----

Exchange::Exchange(std::size_t world, std::shared_ptr<ShareCheck> check)
    : gathered(std::make_shared<Gathered>(std::move(check))), contributed(world), watching(world, false) {
  gathered->of.resize(world);
}

/// Called once per rank.
void Exchange::add(std::uint32_t rank, const Flight& flight) {
  contributed[rank] = flight;
  ++so_far;
  first_arrival = std::min(first_arrival, flight.arrives_at);
  if (flight.arrives_at < last_arrival) {
    last_but_one = std::max(last_but_one, flight.arrives_at);
    return;
  }
  last_but_one = last_arrival;
  last_arrival = flight.arrives_at;
  last_rank = rank;
}

Exchange& View::exchange(Lane lane, std::uint64_t index) {
  ExchangesOfLane& of = exchanges.at(static_cast<std::size_t>(lane));
  RIVULET_CHECK(index >= of.first, "all ranks have left this exchange");
  while (of.first + of.open.size() <= index) of.open.emplace_back(members.size(), work->check());
  return of.open[index - of.first];
}

void View::leave_exchange(Lane lane, std::uint64_t index) {
  ++exchange(lane, index).left;
  ExchangesOfLane& of = exchanges.at(static_cast<std::size_t>(lane));
  for (; !of.open.empty() && of.open.front().left == members.size(); ++of.first) of.open.pop_front();
}

// ---- one rank of an exchange ----

SharedWork& Endpoint::work() {
  return *view_->work;
}

Ticket Endpoint::contribute(Contribution contribution) {
  const std::lock_guard lock(state_->mutex);
  const Ticket ticket{++last_ticket_};
  RIVULET_CHECK(connected_locked() != Progress::pending, "contributed before connected() was done");
  Entered entered{ticket.id, contribution.lane, next_of(contribution.lane)++, clock_.now(),
                  contribution.patient};
  if (!failed_) {
    if (!contribution.patient) start_waiting(clock_.now());
    Exchange& exchange = view_->exchange(entered.lane, entered.index);
    RIVULET_CHECK(exchange.contributors == 0 || exchange.contributors == contribution.contributors,
                  "ranks disagree on the number of contributors");
    exchange.contributors = contribution.contributors;
    if (!contribution.receives_only && !view_->members[rank()].gone_at)
      deposit(exchange, entered, std::move(contribution));
    if (exchange.complete()) notify_due(ready_at(entered, exchange));
  }
  entered_.push_back(entered);
  return ticket;
}

void Endpoint::deposit(Exchange& exchange, Entered& entered, Contribution contribution) {
  Flight flight;
  const std::size_t bytes = contribution.bytes.size();
  const Duration takes = state_->time_on(state_->link, bytes);
  const TimePoint begins = std::max(entered.at, wires_free_at_);
  flight.sent_at = begins + state_->time_on(state_->link, contribution.header_bytes);
  flight.left_at = wires_free_at_ = flight.sent_at + takes;
  flight.arrives_at = flight.left_at + state_->link.latency;
  flight.chunk = chunk_of(entered.lane, takes, bytes);
  if (world() > 1) entered.left_at = flight.left_at;
  counters_.sent(contribution.lane, (world() - 1) * (contribution.header_bytes + bytes));
  exchange.bytes += contribution.header_bytes + bytes;
  entered.own_bytes = contribution.header_bytes + bytes;
  exchange.gathered->of[rank()] = std::move(contribution.bytes);
  // A device that has computed contributes by its own clock, which is ahead: contributions may arrive in a
  // different order than they were added.
  const bool first = flight.arrives_at < exchange.first_arrival;
  exchange.add(rank(), flight);
  Member& me = view_->members[rank()];
  me.last_contributed = std::max(me.last_contributed, flight.arrives_at);
  for (std::uint32_t k = 1; k < world() && (first || exchange.complete()); ++k) {
    const std::uint32_t r = (rank() + k) % world();
    if (Endpoint* peer = view_->members[r].endpoint; peer != nullptr) peer->hear(exchange, entered, flight);
  }
}

/// Called if a peer's contribution arrives first or completes the exchange.
void Endpoint::hear(const Exchange& exchange, const Entered& theirs, const Flight& flight) {
  const auto mine = std::ranges::find_if(
      entered_, [&](const Entered& e) { return e.lane == theirs.lane && e.index == theirs.index; });
  if (mine == entered_.end()) {
    if (exchange.watching[rank()]) notify_due(flight.arrives_at);
  } else if (exchange.complete()) {
    notify_due(ready_at(*mine, exchange));
  }
}

TimePoint Endpoint::ready_at(const Entered& entered, const Exchange& exchange) const {
  const TimePoint last = exchange.last_rank == rank() ? exchange.last_but_one : exchange.last_arrival;
  return std::max(last, entered.left_at);
}

bool Endpoint::anything_contributed(Lane lane) {
  const std::lock_guard lock(state_->mutex);
  if (!failed_) look(clock_.now(), 0);
  if (failed_) return false;
  Exchange& exchange = view_->exchange(lane, next_of(lane));
  if (exchange.first_arrival <= clock_.now()) return true;
  if (exchange.so_far > 0) notify_due(exchange.first_arrival);
  exchange.watching[rank()] = true;
  return false;
}

std::span<const std::byte> Endpoint::received(Lane lane, std::uint32_t rank) {
  const std::lock_guard lock(state_->mutex);
  if (failed_ || rank == spec_.rank) return {};
  const Exchange& exchange = view_->exchange(lane, next_of(lane));
  return exchange.contributed[rank].arrives_at <= clock_.now()
             ? std::span<const std::byte>(exchange.gathered->of[rank])
             : std::span<const std::byte>();
}

std::shared_ptr<Gathered> Endpoint::take(Ticket ticket) {
  const std::lock_guard lock(state_->mutex);
  const auto it = find_entered(ticket.id);
  RIVULET_CHECK(it != entered_.end() && it->done, "the result was taken before it was complete, or twice");
  auto gathered = view_->exchange(it->lane, it->index).gathered;
  view_->leave_exchange(it->lane, it->index);
  entered_.erase(it);
  return gathered;
}

void Endpoint::conclude_gathered(TimePoint now, Entered& entered) {
  const Exchange& exchange = view_->exchange(entered.lane, entered.index);
  if (entered.done || !exchange.complete()) return;
  const TimePoint ready = ready_at(entered, exchange);
  if (now < ready) return;
  entered.done = true;
  counters_.bytes_received += exchange.bytes - entered.own_bytes;
  if (!entered.patient) --deadline_.waiting;
  deadline_.last_progress = std::max(deadline_.last_progress, ready);
}

std::vector<Entered>::iterator Endpoint::find_entered(std::uint64_t ticket) {
  return std::ranges::find_if(entered_, [&](const Entered& e) { return e.ticket == ticket; });
}

// ---- missing ranks ----

bool Endpoint::received_bye_from(std::uint32_t peer, TimePoint now) const {
  return std::ranges::any_of(entered_, [&](const Entered& e) {
    return e.lane == Lane::shutdown && view_->exchange(e.lane, e.index).contributed[peer].arrives_at <= now;
  });
}

bool Endpoint::still_to_hear(std::uint32_t peer, TimePoint now) const {
  return std::ranges::any_of(entered_, [&](const Entered& e) {
    return !e.done && !e.patient && view_->exchange(e.lane, e.index).contributed[peer].arrives_at > now;
  });
}

/// Counts received chunks as progress. Returns the first rank whose bytes are missing, in message order.
std::optional<std::uint32_t> Endpoint::latest_contribution(TimePoint now) {
  std::optional<std::uint32_t> missing;
  for (const Entered& e : entered_) {
    if (e.done || e.patient) continue;
    const Exchange& exchange = view_->exchange(e.lane, e.index);
    for (std::uint32_t k = 0; k < world(); ++k) {
      const std::uint32_t r = (rank() + k) % world();
      const Flight& flight = exchange.contributed[r];
      const bool latest = flight.arrives_at != TimePoint::max();
      const bool here = flight.arrives_at <= now;
      if (k > 0 && !here && !missing) missing = r;
      if (!latest) continue;
      const Duration extra = k == 0 ? Duration::zero() : state_->link.latency;
      deadline_.last_progress =
          std::max(deadline_.last_progress, here ? flight.arrives_at : latest_chunk(flight, extra, now));
    }
  }
  return missing;
}

}  // namespace rivulet::sync::memory
