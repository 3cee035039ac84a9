#pragma once
#include <memory>
#include <utility>

#include "core/shared_work.h"
#include "devices/device.h"
#include "runtime/state/agreed_state.h"

namespace rivulet::runtime {

/// The agreed state as one device holds it. If a process has only one device, it changes the state in place.
/// Devices that share memory and have the same state share one object. The first device that needs the next
/// state makes a new object, and the others use it. A device that is killed before then keeps the old object.
/// Owner: the train thread.
class StateHandle {
 public:
  explicit StateHandle(AgreedState first) : state_(std::make_shared<AgreedState>(std::move(first))) {}

  [[nodiscard]] const AgreedState& operator*() const noexcept { return *state_; }
  [[nodiscard]] const AgreedState* operator->() const noexcept { return state_.get(); }
  [[nodiscard]] bool is_shared() const noexcept { return state_.use_count() > 1; }
  void replace(AgreedState state) { state_ = std::make_shared<AgreedState>(std::move(state)); }
  /// Returns the state for a change by this device alone. Copies the state if others share it. Errors:
  /// unavailable (memory).
  Result<AgreedState*> own(devices::Device& device);
  /// Shares the object of the other devices that joined the same work. Its value must equal theirs.
  void join(SharedWork& work);

  /// Returns digest_of() the state. If the state is shared, it is computed once for each `work`.
  Result<Digest> digest(SharedWork& work, devices::Device& device) const;

  /// Returns a T derived from the state. `work` must depend on everything else that T depends on.
  template <class T, class Make>
  std::shared_ptr<const T> derive(SharedWork& work, const Make& make) const {
    if (!is_shared()) return make();
    return work.once<T>(state_, make);
  }
  /// Replaces the state by the next one and returns the Result<T> of change(AgreedState&), which must be a
  /// pure function of the state and of everything that `work` depends on. After an error, the state may be
  /// partly changed. T needs operator==.
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
    std::shared_ptr<AgreedState> state;  ///< immutable from here on
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
