#pragma once
#include <memory>
#include <utility>

#include "core/shared_work.h"
#include "devices/device.h"
#include "runtime/state/agreed_state.h"

namespace rivulet::runtime {

/// The agreed state as one device holds it. Alone in its process it changes in place. Where devices share
/// memory, those that hold the same state hold one object: what follows from it is made by the one that comes
/// first, as another object, and the others take that. Who is killed in between keeps the older one. Owner:
/// the train thread.
class StateHandle {
 public:
  explicit StateHandle(AgreedState first) : state_(std::make_shared<AgreedState>(std::move(first))) {}

  [[nodiscard]] const AgreedState& operator*() const noexcept { return *state_; }
  [[nodiscard]] const AgreedState* operator->() const noexcept { return state_.get(); }
  [[nodiscard]] bool is_shared() const noexcept { return state_.use_count() > 1; }
  void replace(AgreedState state) { state_ = std::make_shared<AgreedState>(std::move(state)); }
  /// For a change that is this device's own: a copy if others hold it, too. Errors: unavailable (memory).
  Result<AgreedState*> own(devices::Device& device);
  /// From now on this is the object that others hold who joined the same work. It must equal theirs.
  void join(SharedWork& work);

  /// digest_of(), made from memory; where the state is shared once for each `work`.
  Result<Digest> digest(SharedWork& work, devices::Device& device) const;

  /// A T that follows from the state, as shared_ptr: `work` hangs on what else it follows from.
  template <class T, class Make>
  std::shared_ptr<const T> derive(SharedWork& work, const Make& make) const {
    if (!is_shared()) return make();
    return work.once<T>(state_, make);
  }
  /// The next state: Result<T> of change(AgreedState&), a pure function of the state and of what `work` hangs
  /// on. After an error it may be half changed. T needs ==.
  template <class T, class Change>
  Result<T> advance(SharedWork& work, devices::Device& device, const Change& change) {
    if (!is_shared()) return change(*state_);
    const auto made = work.once<Advanced<T>>(state_, [&] { return advanced<T>(device, change); });
    if (!made->outcome) return made->outcome.error();
    state_ = made->state;
    return made->outcome;
  }

 private:
  template <class T>
  struct Advanced {
    std::shared_ptr<AgreedState> state;  ///< changed by nobody from here on
    Result<T> outcome;
    bool operator==(const Advanced& other) const {
      if (!outcome || !other.outcome) return bool(outcome) == bool(other.outcome);
      return outcome.value() == other.outcome.value() && *state == *other.state;
    }
  };
  Result<AgreedState> copy(devices::Device& device) const;

  template <class T, class Change>
  std::shared_ptr<const Advanced<T>> advanced(devices::Device& device, const Change& change) const {
    auto next = copy(device);
    if (!next) return std::make_shared<const Advanced<T>>(Advanced<T>{nullptr, next.error()});
    auto state = std::make_shared<AgreedState>(std::move(next).value());
    Result<T> outcome = change(*state);
    return std::make_shared<const Advanced<T>>(Advanced<T>{std::move(state), std::move(outcome)});
  }

  std::shared_ptr<AgreedState> state_;
};

}  // namespace rivulet::runtime
