#include "runtime/wiring/sim_runner.h"

#include <algorithm>
#include <compare>
#include <deque>
#include <functional>
#include <vector>

#include "core/check.h"
#include "runtime/wiring/agenda.h"

namespace rivulet::runtime {
namespace {

// A reason to step one agent. Ties in time go to the older event.
struct Event {
  TimePoint at = TimePoint::max();
  std::uint64_t sequence = 0;
  auto operator<=>(const Event&) const = default;
};

// Pause of an agent that did no work and requested a time already reached: without it virtual time would
// never advance. The runner of a real thread pauses as well.
constexpr Duration back_off = std::chrono::milliseconds(1);

}  // namespace

struct SimRunner::State {
  struct SimWake final : Wake {
    SimWake(State& state_in, std::uint32_t slot_in) : state(state_in), slot(slot_in) {}
    void notify() noexcept override { state.call(slot, state.here()); }
    void notify_at(TimePoint at) noexcept override {
      if (at != TimePoint::max()) state.call(slot, at);
    }
    State& state;
    const std::uint32_t slot;
  };
  struct Slot {
    Agent* agent = nullptr;
    VirtualClock* clock = nullptr;
    Event timer;                               // wake-up time requested last by the agent
    std::vector<Event> calls;                  // notifications by others, a heap with the earliest in front
    TimePoint newest_call = TimePoint::max();  // while still in `calls`
    bool finished = false;

    [[nodiscard]] const Event& next() const noexcept {
      return calls.empty() || timer < calls.front() ? timer : calls.front();
    }
  };

  std::deque<SimWake> wakes;
  std::vector<Slot> slots;
  // Ties go to the slot created first, however many notifications each has.
  Agenda agenda;
  std::uint64_t sequence = 0;
  TimePoint now{};
  const VirtualClock* running = nullptr;  // clock of the agent being stepped

  // Charged compute time moves the agent's clock past the event; its notifications carry that time.
  [[nodiscard]] TimePoint here() const noexcept { return running ? std::max(now, running->now()) : now; }

  void call(std::uint32_t index, TimePoint at);
  void set_timer(std::uint32_t index, TimePoint at);
  void put_down(std::uint32_t index);
  void retire(std::uint32_t index);
  TimePoint take_event(Slot& slot);
  bool claim(std::uint32_t index);
  void step(std::uint32_t index);
};

void SimRunner::State::put_down(std::uint32_t index) {
  agenda.set(index, slots[index].next().at);
}

// Notifications for the same instant are merged.
void SimRunner::State::call(std::uint32_t index, TimePoint at) {
  at = std::max(at, now);
  Slot& slot = slots[index];
  if (slot.finished || slot.newest_call == at) return;
  slot.newest_call = at;
  slot.calls.push_back({at, ++sequence});
  std::push_heap(slot.calls.begin(), slot.calls.end(), std::greater<>());
  put_down(index);
}

// The agent's latest wake-up time replaces the earlier one.
void SimRunner::State::set_timer(std::uint32_t index, TimePoint at) {
  Slot& slot = slots[index];
  if (slot.timer.at != at) slot.timer = {at, ++sequence};
  put_down(index);
}

// Removes the slot from the agenda permanently.
void SimRunner::State::retire(std::uint32_t index) {
  Slot& slot = slots[index];
  slot.finished = true;
  slot.timer = {};
  slot.calls.clear();
  put_down(index);
}

// Removes the slot's due event and returns its time.
TimePoint SimRunner::State::take_event(Slot& slot) {
  const TimePoint due = slot.next().at;
  if (slot.calls.empty() || slot.timer < slot.calls.front()) {
    slot.timer = {};
    return due;
  }
  std::pop_heap(slot.calls.begin(), slot.calls.end(), std::greater<>());
  slot.calls.pop_back();
  if (slot.newest_call == due) slot.newest_call = TimePoint::max();
  return due;
}

// Returns false if the agent is gone or still busy.
bool SimRunner::State::claim(std::uint32_t index) {
  Slot& slot = slots[index];
  const TimePoint due = take_event(slot);
  put_down(index);
  if (slot.agent == nullptr) return false;
  const TimePoint busy_until = slot.clock->now();
  if (busy_until > due) {  // still computing: postpones the event
    call(index, busy_until);
    return false;
  }
  now = due;
  return true;
}

void SimRunner::State::step(std::uint32_t index) {
  VirtualClock& clock = *slots[index].clock;
  clock.advance_to(now);
  running = &clock;
  const Turn turn = slots[index].agent->step();
  running = nullptr;
  if (turn.finished) return retire(index);
  if (turn.work > 0) return set_timer(index, clock.now());
  set_timer(index, turn.wake_at > clock.now() ? turn.wake_at : clock.now() + back_off);
}

SimRunner::SimRunner() : state_(std::make_unique<State>()) {}
SimRunner::~SimRunner() = default;

Wake& SimRunner::make_wake() {
  const std::uint32_t slot = state_->agenda.add();
  state_->slots.emplace_back();
  return state_->wakes.emplace_back(*state_, slot);
}

void SimRunner::add(Agent& agent, VirtualClock& clock, Wake& wake) {
  const auto* own = dynamic_cast<State::SimWake*>(&wake);
  RIVULET_CHECK(own != nullptr && &own->state == state_.get(), "the wake belongs to a different runner");
  State::Slot& slot = state_->slots[own->slot];
  RIVULET_CHECK(slot.agent == nullptr, "the wake already belongs to an agent");
  slot.agent = &agent;
  slot.clock = &clock;
  state_->set_timer(own->slot, std::max(state_->now, clock.now()));
}

void SimRunner::remove(Wake& wake) {
  auto* own = dynamic_cast<State::SimWake*>(&wake);
  RIVULET_CHECK(own != nullptr && &own->state == state_.get(), "the wake belongs to a different runner");
  state_->slots[own->slot].agent = nullptr;
  state_->slots[own->slot].clock = nullptr;
  state_->retire(own->slot);
}

std::uint64_t SimRunner::run_until(const std::function<bool()>& done) {
  State& s = *state_;
  std::uint64_t steps = 0;
  while (s.agenda.earliest() != TimePoint::max() && !done()) {
    const std::uint32_t first = s.agenda.first();
    if (!s.claim(first)) continue;
    s.step(first);
    ++steps;
  }
  return steps;
}

TimePoint SimRunner::now() const noexcept {
  return state_->now;
}

}  // namespace rivulet::runtime
