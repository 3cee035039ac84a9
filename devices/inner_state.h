#pragma once
#include <cstddef>
#include <optional>

#include "devices/model_state.h"

/// What trainers share that stand around another one and have buffers of their own behind its buffers.
namespace rivulet::devices {

/// What the trainer inside sees of a state. States of a device lie where they lie: the last one is kept.
/// Owner: the trainer around; its thread.
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

/// So many buffers more, behind those that there are.
inline void append_buffers(ModelLayout& layout, const char* name, std::size_t count) {
  layout.buffer_slots.push_back({name, {static_cast<std::int64_t>(count)}, layout.buffers, count});
  layout.buffers += count;
}

}  // namespace rivulet::devices
