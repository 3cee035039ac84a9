#include "tests/support/sim_wires.h"

#include <algorithm>
#include <deque>
#include <map>

#include "tests/support/sim_referee.h"

namespace rivulet::testing {
namespace {

constexpr Duration usual_latency = std::chrono::microseconds(300);

/// Receives of one endpoint: a message that the network has delivered may still be delayed for its owner.
/// Messages of one lane and sender arrive in order, regardless of the order of requests.
class Arrivals {
 public:
  using From = std::pair<std::uint32_t, sync::Lane>;
  void expect(const From& from, sync::Ticket ticket) {
    froms_[ticket.id] = from;
    lanes_[from].open.push_back({ticket.id, std::nullopt});
  }
  /// Time at which the owner may have a message that was delivered by `now`; nullopt: immediately. `draw`
  /// returns an extra delay.
  template <typename Draw>
  std::optional<TimePoint> due(sync::Ticket ticket, TimePoint now, const Draw& draw) {
    const auto from = froms_.find(ticket.id);
    if (from == froms_.end()) return std::nullopt;
    Lane& lane = lanes_[from->second];
    for (Receive& receive : lane.open) {
      if (!receive.due) receive.due = lane.last = std::max(lane.last, now + draw());
      if (receive.ticket == ticket.id) return receive.due;
    }
    return std::nullopt;
  }
  void forget(sync::Ticket ticket) {
    const auto from = froms_.find(ticket.id);
    if (from == froms_.end()) return;
    std::erase_if(lanes_[from->second].open, [&](const Receive& r) { return r.ticket == ticket.id; });
    froms_.erase(from);
  }

 private:
  struct Receive {
    std::uint64_t ticket = 0;
    std::optional<TimePoint> due;  ///< set when the network has delivered it
  };
  struct Lane {
    std::deque<Receive> open;  ///< in posting order
    TimePoint last{};
  };
  std::map<From, Lane> lanes_;
  std::map<std::uint64_t, From> froms_;  ///< by ticket
};

}  // namespace

/// One device's endpoint in a view: the in-memory one, while it has power and is not cut.
class SimWires::Wire final : public sync::Transport {
 public:
  Wire(SimWires& wires, std::size_t device, std::vector<std::size_t> peers, const Clock& clock,
       SimPower& power, Wake& wake, std::unique_ptr<sync::Transport> inner)
      : wires_(wires),
        device_(device),
        peers_(std::move(peers)),
        clock_(clock),
        power_(power),
        wake_(wake),
        inner_(std::move(inner)),
        cuts_(wires.cuts_[device]),
        until_(clock.now() + wires.deadline_) {}

  [[nodiscard]] std::uint32_t rank() const noexcept override { return inner_->rank(); }
  [[nodiscard]] std::uint32_t world() const noexcept override { return inner_->world(); }
  Progress connected() override {
    if (broken()) return Progress::failed;
    if (!connected_ && !reaches_all()) {
      if (clock_.now() < until_) return Progress::pending;
      wires_.faults_.count(SimFault::no_connection);
      return fail({ErrorCode::timed_out, "no link to a member of the view"});
    }
    const Progress progress = inner_->connected();
    connected_ = connected_ || progress == Progress::done;
    return progress;
  }
  sync::Ticket send(std::uint32_t peer, sync::Lane lane, std::span<const std::byte> bytes) override {
    return may_send(bytes) ? inner_->send(peer, lane, bytes) : sync::Ticket{};
  }
  sync::Ticket send_ahead(std::uint32_t peer, sync::Lane lane, std::span<const std::byte> bytes) override {
    return may_send(bytes) ? inner_->send_ahead(peer, lane, bytes) : sync::Ticket{};
  }
  sync::Ticket receive(std::uint32_t peer, sync::Lane lane, std::span<std::byte> bytes) override {
    return broken() ? sync::Ticket{} : expect(peer, lane, inner_->receive(peer, lane, bytes));
  }
  sync::Ticket receive_ahead(std::uint32_t peer, sync::Lane lane, std::span<std::byte> bytes) override {
    return broken() ? sync::Ticket{} : expect(peer, lane, inner_->receive_ahead(peer, lane, bytes));
  }
  void promote(sync::Ticket ticket) override {
    if (!broken()) inner_->promote(ticket);
  }
  Progress poll(sync::Ticket ticket) override {
    if (power_.off()) return Progress::pending;
    if (broken()) return Progress::failed;
    const Progress progress = inner_->poll(ticket);
    return progress == Progress::done ? take(ticket) : progress;
  }
  bool healthy() override { return !broken() && inner_->healthy(); }
  [[nodiscard]] const Error& error() const override { return failed_ ? error_ : inner_->error(); }
  [[nodiscard]] int lost_rank() const noexcept override { return failed_ ? -1 : inner_->lost_rank(); }
  [[nodiscard]] sync::TransportCounters counters() const noexcept override { return inner_->counters(); }
  void close() noexcept override { inner_->close(); }

 private:
  bool may_send(std::span<const std::byte> bytes) {
    if (broken() || !power_.take()) return false;
    wires_.watcher_(bytes);
    if (wires_.slow_) wires_.faults_.count(SimFault::message_slow);
    return true;
  }
  sync::Ticket expect(std::uint32_t peer, sync::Lane lane, sync::Ticket ticket) {
    if (wires_.delay_most_ > Duration::zero()) arrivals_.expect({peer, lane}, ticket);
    return ticket;
  }
  /// The network has delivered it.
  Progress take(sync::Ticket ticket) {
    const TimePoint now = clock_.now();
    const auto due = arrivals_.due(ticket, now, [this] { return wires_.draw_delay(); });
    if (due && *due > now) {
      latest_ = std::max(latest_, *due);
      wake_.notify_at(*due);
      return Progress::pending;
    }
    if (due && latest_ > now) wires_.faults_.count(SimFault::message_overtaken);
    arrivals_.forget(ticket);
    return Progress::done;
  }
  bool broken() {
    if (!failed_ && cuts_ != wires_.cuts_[device_]) {
      wires_.faults_.count(SimFault::connection_broken);
      fail({ErrorCode::peer_lost, "the connection broke"});
    }
    return failed_;
  }
  Progress fail(Error error) {
    failed_ = true;
    error_ = std::move(error);
    inner_->close();
    return Progress::failed;
  }
  [[nodiscard]] bool reaches_all() const {
    return std::ranges::all_of(peers_, [&](std::size_t other) {
      return wires_.reaches(device_, other) && wires_.reaches(other, device_);
    });
  }

  SimWires& wires_;
  const std::size_t device_;
  const std::vector<std::size_t> peers_;  ///< the other members
  const Clock& clock_;
  SimPower& power_;
  Wake& wake_;
  std::unique_ptr<sync::Transport> inner_;
  Arrivals arrivals_;
  TimePoint latest_{};  ///< when all delayed messages are here
  const std::uint64_t cuts_;
  const TimePoint until_;
  bool connected_ = false;
  bool failed_ = false;
  Error error_{ErrorCode::peer_lost, ""};
};

SimWires::SimWires(std::size_t devices, Duration deadline)
    : devices_(devices),
      deadline_(deadline),
      network_({usual_latency, 0}, {.progress_deadline = deadline}),
      blocked_(devices * devices, 0),
      muted_(devices, 0),
      cuts_(devices, 0) {
  network_.set_loss([this](std::uint32_t from, std::uint32_t to, sync::Lane lane, std::uint64_t) {
    return loses(from, to, lane);
  });
}

bool SimWires::loses(std::size_t from, std::size_t to, sync::Lane lane) {
  if (!reaches(from, to)) {
    faults_.count(reaches(to, from) ? SimFault::blocked_one_way : SimFault::blocked_both_ways);
    return true;
  }
  const bool mute = muted_[from] != 0 && (lane == sync::Lane::payload || lane == sync::Lane::speculative);
  if (mute) faults_.count(SimFault::message_muted);
  return mute;
}

Duration SimWires::draw_delay() {
  if (delays_.below(4) != 0) return Duration::zero();
  faults_.count(SimFault::message_delayed);
  return Duration(static_cast<Duration::rep>(delays_.below(static_cast<std::uint64_t>(delay_most_.count()))));
}

sync::Connect SimWires::connect(std::size_t device, const Clock& clock, SimPower& power) {
  network_.restart(id_of_device(device));
  return [this, device, &clock, &power, usual = network_.connect_for(clock)](
             const sync::ViewSpec& spec, sync::AddressBook& book,
             Wake& wake) -> Result<std::unique_ptr<sync::Transport>> {
    auto inner = usual(spec, book, wake);
    if (!inner) return inner.error();
    std::vector<std::size_t> peers;
    for (std::size_t other = 0; other < devices_; ++other)
      if (other != device && std::ranges::binary_search(spec.members, id_of_device(other)))
        peers.push_back(other);
    return std::unique_ptr<sync::Transport>(std::make_unique<Wire>(*this, device, std::move(peers), clock,
                                                                   power, wake, std::move(inner).value()));
  };
}

void SimWires::isolate(std::size_t device, bool so) {
  for (std::size_t other = 0; other < devices_; ++other) {
    block(device, other, so);
    block(other, device, so);
  }
}

void SimWires::slow_down(Duration latency) {
  slow_ = latency > Duration::zero();
  network_.set_link({usual_latency + latency, 0});
}

void SimWires::heal() {
  std::fill(blocked_.begin(), blocked_.end(), std::uint8_t{0});
  std::fill(muted_.begin(), muted_.end(), std::uint8_t{0});
  slow_down(Duration::zero());
}

}  // namespace rivulet::testing
