#pragma once
#include <cstddef>
#include <optional>

#include "devices/model_state.h"

/// For trainers that wrap another trainer and keep buffers of their own behind its buffers.
namespace rivulet::devices {

/// What the inner trainer sees of a state. A device has few states, and they do not move: the last view is
/// kept. Owner: the outer trainer; its thread.
class InnerState {
 public:
  const ModelState& of(const ModelLayout& inside, const ModelState& state) {
    const bool same = seen_ && seen_->parameters().data == state.parameters().data &&
                      seen_->buffers().data == state.buffers().data &&
                      &seen_->statistics() == &state.statistics();
    if (!same) seen_.emplace(ModelState::over(inside, state));
    return *seen_;
  }
  void forget() noexcept { seen_.reset(); }

 private:
  std::optional<ModelState> seen_;
};

/// Adds `count` numbers of this name behind the buffers of the layout.
inline void append_buffers(ModelLayout& layout, const char* name, std::size_t count) {
  layout.buffer_slots.push_back({name, {static_cast<std::int64_t>(count)}, layout.buffers, count});
  layout.buffers += count;
}

}  // namespace rivulet::devices
