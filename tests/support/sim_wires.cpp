#include "tests/support/sim_wires.h"

#include <algorithm>

namespace rivulet::testing {
namespace {

constexpr Duration usual_latency = std::chrono::microseconds(300);

}  // namespace

/// One device's end of a view: the in-memory one, as long as there is power and nothing cuts it.
class SimWires::Wire final : public sync::Transport {
 public:
  Wire(SimWires& wires, std::size_t device, const Clock& clock, SimPower& power,
       std::unique_ptr<sync::Transport> inner)
      : wires_(wires),
        device_(device),
        clock_(clock),
        power_(power),
        inner_(std::move(inner)),
        cuts_(wires.cuts_[device]),
        until_(clock.now() + wires.deadline_) {}

  [[nodiscard]] std::uint32_t rank() const noexcept override { return inner_->rank(); }
  [[nodiscard]] std::uint32_t world() const noexcept override { return inner_->world(); }
  Progress connected() override {
    if (broken()) return Progress::failed;
    if (!connected_ && !reaches_all()) {
      if (clock_.now() < until_) return Progress::pending;
      return fail({ErrorCode::timed_out, "no link to a member of the view"});
    }
    const Progress progress = inner_->connected();
    connected_ = connected_ || progress == Progress::done;
    return progress;
  }
  sync::Ticket send(std::uint32_t peer, sync::Lane lane, std::span<const std::byte> bytes) override {
    if (broken() || !power_.take()) return {};
    if (lane != sync::Lane::moves) wires_.watcher_(bytes);
    return inner_->send(peer, lane, bytes);
  }
  sync::Ticket receive(std::uint32_t peer, sync::Lane lane, std::span<std::byte> bytes) override {
    return broken() ? sync::Ticket{} : inner_->receive(peer, lane, bytes);
  }
  sync::Ticket receive_ahead(std::uint32_t peer, sync::Lane lane, std::span<std::byte> bytes) override {
    return broken() ? sync::Ticket{} : inner_->receive_ahead(peer, lane, bytes);
  }
  void promote(sync::Ticket ticket) override {
    if (!broken()) inner_->promote(ticket);
  }
  Progress poll(sync::Ticket ticket) override {
    if (power_.off()) return Progress::pending;
    return broken() ? Progress::failed : inner_->poll(ticket);
  }
  bool healthy() override { return !broken() && inner_->healthy(); }
  [[nodiscard]] const Error& error() const override { return failed_ ? error_ : inner_->error(); }
  [[nodiscard]] int lost_rank() const noexcept override { return failed_ ? -1 : inner_->lost_rank(); }
  [[nodiscard]] sync::TransportCounters counters() const noexcept override { return inner_->counters(); }
  void close() noexcept override { inner_->close(); }

 private:
  bool broken() {
    if (!failed_ && cuts_ != wires_.cuts_[device_]) fail({ErrorCode::peer_lost, "the connection broke"});
    return failed_;
  }
  Progress fail(Error error) {
    failed_ = true;
    error_ = std::move(error);
    inner_->close();
    return Progress::failed;
  }
  [[nodiscard]] bool reaches_all() const {
    for (std::size_t other = 0; other < wires_.devices_; ++other)
      if (other != device_ && !(wires_.reaches(device_, other) && wires_.reaches(other, device_)))
        return false;
    return true;
  }

  SimWires& wires_;
  const std::size_t device_;
  const Clock& clock_;
  SimPower& power_;
  std::unique_ptr<sync::Transport> inner_;
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
    return !reaches(from, to) ||
           (muted_[from] != 0 && (lane == sync::Lane::payload || lane == sync::Lane::early));
  });
}

sync::Connect SimWires::connect(std::size_t device, const Clock& clock, SimPower& power) {
  return [this, device, &clock, &power, usual = network_.connect_for(clock)](
             const sync::ViewSpec& spec, sync::AddressBook& book,
             Wake& wake) -> Result<std::unique_ptr<sync::Transport>> {
    auto inner = usual(spec, book, wake);
    if (!inner) return inner.error();
    return std::unique_ptr<sync::Transport>(
        std::make_unique<Wire>(*this, device, clock, power, std::move(inner).value()));
  };
}

void SimWires::isolate(std::size_t device, bool so) {
  for (std::size_t other = 0; other < devices_; ++other) {
    block(device, other, so);
    block(other, device, so);
  }
}

void SimWires::slow_down(Duration latency) {
  network_.set_link({usual_latency + latency, 0});
}

void SimWires::heal() {
  std::fill(blocked_.begin(), blocked_.end(), std::uint8_t{0});
  std::fill(muted_.begin(), muted_.end(), std::uint8_t{0});
  slow_down(Duration::zero());
}

}  // namespace rivulet::testing
