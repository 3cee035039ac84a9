#include "runtime/state/state_handle.h"

namespace rivulet::runtime {

Result<AgreedState> StateHandle::copy(devices::Device& device) const {
  auto model = devices::ModelState::create(state_->model.layout(), device);
  if (!model) return model.error();
  AgreedState out{std::move(model).value(), {}, 0, {}};
  out.copy_from(*state_);
  return out;
}

Result<Digest> StateHandle::digest(SharedWork& work, devices::Device& device) const {
  struct Digested {
    Result<Digest> outcome;
    bool operator==(const Digested& other) const {
      return outcome && other.outcome && outcome.value() == other.outcome.value();
    }
  };
  if (!is_shared()) return digest_of(*state_, device);
  return derive<Digested>(
             work, [&] { return std::make_shared<const Digested>(Digested{digest_of(*state_, device)}); })
      ->outcome;
}

Result<AgreedState*> StateHandle::own(devices::Device& device) {
  if (is_shared()) {
    auto mine = copy(device);
    if (!mine) return mine.error();
    replace(std::move(mine).value());
  }
  return state_.get();
}

void StateHandle::join(SharedWork& work) {
  struct Common {
    std::shared_ptr<AgreedState> state;
    bool operator==(const Common& other) const { return *state == *other.state; }
  };
  state_ =
      work.once<Common>(nullptr, [this] { return std::make_shared<const Common>(Common{state_}); })->state;
}

}  // namespace rivulet::runtime
