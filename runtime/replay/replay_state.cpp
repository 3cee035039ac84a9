#include "runtime/replay/replay_state.h"

#include <algorithm>

#include "runtime/state/round_update.h"

namespace rivulet::runtime {

bool ReplayState::needed(std::uint64_t step) const {
  return std::any_of(starts_.begin() + static_cast<std::ptrdiff_t>(entered_), starts_.end(),
                     [&](std::uint64_t start) { return start == step; });
}

Status ReplayState::keep_if_needed() {
  if (!needed(step()) || kept_.contains(step())) return ok();
  auto model = devices::ModelState::create(now_.model.layout(), device_);
  if (!model) return model.error();
  AgreedState copy{std::move(model).value(), {}, 0, {}};
  copy.copy_from(now_);
  kept_.emplace(step(), Copy{std::move(copy), residuals_, models_.kept()});
  return ok();
}

void ReplayState::rewrite_residuals(std::span<const devices::Column> before) {
  for (auto& [id, residual] : residuals_) follow_columns(residual, before, now_.model);
}

Result<bool> ReplayState::enter_next(std::uint64_t step) {
  ++entered_;
  const auto kept = kept_.find(step);
  const bool known = step == now_.stamp.step || kept != kept_.end();
  if (known && step != now_.stamp.step) {
    now_.copy_from(kept->second.state);
    residuals_ = kept->second.residuals;
    if (auto restored = models_.restore(kept->second.models, now_); !restored) return restored.error();
  }
  // What lies behind the place that the group resumes from will be done again, otherwise.
  std::erase_if(kept_, [&](const auto& copy) { return copy.first > step || !needed(copy.first); });
  return known;
}

}  // namespace rivulet::runtime
