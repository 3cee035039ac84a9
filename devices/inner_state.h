#pragma once
#include <cstddef>
#include <optional>

#include "devices/model_state.h"

/// For trainers that wrap another trainer and append their own buffers to its buffers.
namespace rivulet::devices {

/// The inner trainer's view of a state. Caches the last view, since a device has few states at fixed
/// addresses. Owner: the outer trainer; its thread.
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

/// Appends a buffer of `count` elements to the layout.
inline void append_buffers(ModelLayout& layout, const char* name, std::size_t count) {
  layout.buffer_slots.push_back({name, {static_cast<std::int64_t>(count)}, layout.buffers, count});
  layout.buffers += count;
}

}  // namespace rivulet::devices
