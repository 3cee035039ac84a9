#include "runtime/wiring/sim_runner.h"

#include <algorithm>
#include <deque>
#include <tuple>
#include <vector>

#include "core/check.h"

namespace rivulet::runtime {
namespace {

struct Event {
  TimePoint at;
  std::uint64_t sequence = 0;
  std::uint32_t slot = 0;
  std::uint64_t timer = 0;  // 0: a notification; else valid only while it is its slot's newest timer
};

// Ties are broken by who was made first, not by who was called first: how many calls it took is no matter.
bool later(const Event& a, const Event& b) noexcept {
  return std::tie(a.at, a.slot, a.sequence) > std::tie(b.at, b.slot, b.sequence);
}

// The pause of an agent that asks for a time it has already reached and did nothing: without it the clock
// would stand still for ever. A thread's runner pauses as well.
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
    bool finished = false;
    std::uint64_t timer = 0;                 // number of the newest timer
    TimePoint timer_at = TimePoint::max();   // max: none set
    TimePoint called_at = TimePoint::max();  // the newest notification still in the heap
  };

  std::deque<SimWake> wakes;
  std::vector<Slot> slots;
  std::vector<Event> heap;
  std::uint64_t sequence = 0;
  std::size_t stale = 0;  // timers in the heap that were replaced
  TimePoint now{};
  const VirtualClock* running = nullptr;  // of the agent that steps right now

  // A step that charged compute has moved its own clock past the event: what it says, it says then.
  [[nodiscard]] TimePoint here() const noexcept { return running ? std::max(now, running->now()) : now; }

  void push(TimePoint at, std::uint32_t slot, std::uint64_t timer) {
    heap.push_back({std::max(at, now), ++sequence, slot, timer});
    std::push_heap(heap.begin(), heap.end(), later);
  }
  Event pop() {
    std::pop_heap(heap.begin(), heap.end(), later);
    const Event event = heap.back();
    heap.pop_back();
    return event;
  }
  void call(std::uint32_t slot, TimePoint at);
  void set_timer(std::uint32_t slot, TimePoint at);
  void clear_timer(Slot& slot);
  void sweep();
  bool claim(const Event& event);
  void step(std::uint32_t index);
};

// Many messages that arrive at the same instant are one reason to look.
void SimRunner::State::call(std::uint32_t slot, TimePoint at) {
  at = std::max(at, now);
  if (slots[slot].finished || slots[slot].called_at == at) return;
  slots[slot].called_at = at;
  push(at, slot, 0);
}

void SimRunner::State::clear_timer(Slot& slot) {
  if (slot.timer_at != TimePoint::max()) ++stale;
  slot.timer_at = TimePoint::max();
  ++slot.timer;
}

// The newest answer of an agent replaces what it asked before.
void SimRunner::State::set_timer(std::uint32_t index, TimePoint at) {
  Slot& slot = slots[index];
  if (slot.timer_at == at) return;
  clear_timer(slot);
  if (at == TimePoint::max()) return;
  slot.timer_at = at;
  push(at, index, slot.timer);
  sweep();
}

// Keeps the heap in proportion to what is really pending.
void SimRunner::State::sweep() {
  if (heap.size() < 1024 || stale * 2 < heap.size()) return;
  std::erase_if(heap, [this](const Event& e) { return e.timer != 0 && e.timer != slots[e.slot].timer; });
  std::make_heap(heap.begin(), heap.end(), later);
  stale = 0;
}

/// Takes a popped event off its slot's books; false if it asks nobody (any more).
bool SimRunner::State::claim(const Event& event) {
  Slot& slot = slots[event.slot];
  if (event.timer == 0) {
    if (slot.called_at == event.at) slot.called_at = TimePoint::max();
  } else if (event.timer == slot.timer) {
    slot.timer_at = TimePoint::max();
  } else {
    if (stale > 0) --stale;
    return false;
  }
  return slot.agent != nullptr && !slot.finished;
}

void SimRunner::State::step(std::uint32_t index) {
  Agent& agent = *slots[index].agent;
  VirtualClock& clock = *slots[index].clock;
  clock.advance_to(now);
  running = &clock;
  const Turn turn = agent.step();
  running = nullptr;
  slots[index].finished = turn.finished;
  if (turn.finished) return clear_timer(slots[index]);
  if (turn.work > 0) return set_timer(index, clock.now());
  set_timer(index, turn.wake_at > clock.now() ? turn.wake_at : clock.now() + back_off);
}

SimRunner::SimRunner() : state_(std::make_unique<State>()) {}
SimRunner::~SimRunner() = default;

Wake& SimRunner::make_wake() {
  const auto slot = static_cast<std::uint32_t>(state_->slots.size());
  state_->slots.emplace_back();
  return state_->wakes.emplace_back(*state_, slot);
}

void SimRunner::add(Agent& agent, VirtualClock& clock, Wake& wake) {
  const auto* own = dynamic_cast<State::SimWake*>(&wake);
  RIVULET_CHECK(own != nullptr && &own->state == state_.get(), "the wake is of another runner");
  State::Slot& slot = state_->slots[own->slot];
  RIVULET_CHECK(slot.agent == nullptr, "two agents with one wake");
  slot.agent = &agent;
  slot.clock = &clock;
  state_->set_timer(own->slot, std::max(state_->now, clock.now()));
}

void SimRunner::remove(Wake& wake) {
  auto* own = dynamic_cast<State::SimWake*>(&wake);
  RIVULET_CHECK(own != nullptr && &own->state == state_.get(), "the wake is of another runner");
  State::Slot& slot = state_->slots[own->slot];
  state_->clear_timer(slot);
  slot.agent = nullptr;
  slot.clock = nullptr;
  slot.finished = true;
}

std::uint64_t SimRunner::run_until(const std::function<bool()>& done) {
  State& s = *state_;
  std::uint64_t steps = 0;
  while (!s.heap.empty() && !done()) {
    const Event event = s.pop();
    if (!s.claim(event)) continue;
    const TimePoint busy_until = s.slots[event.slot].clock->now();
    if (busy_until > event.at) {  // it is still computing: the event waits
      s.call(event.slot, busy_until);
      continue;
    }
    s.now = event.at;
    s.step(event.slot);
    ++steps;
  }
  return steps;
}

TimePoint SimRunner::now() const noexcept {
  return state_->now;
}

}  // namespace rivulet::runtime
