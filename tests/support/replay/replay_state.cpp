#include "tests/support/replay/replay_state.h"

#include <algorithm>
#include <utility>

#include "runtime/state/rollback.h"
#include "runtime/state/round_update.h"

namespace rivulet::runtime {

bool ReplayState::needed(std::uint64_t step) const {
  return std::any_of(starts_.begin() + static_cast<std::ptrdiff_t>(entered_), starts_.end(),
                     [&](const Start& start) { return start.step == step || start.back == step; });
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

Status ReplayState::roll_back(const Retreat& retreat, std::uint64_t step) {
  if (step == now_.stamp.step + steps_kept) {
    stay_in(now_, retreat.view, retreat.remembered);
    return ok();
  }
  if (step != now_.stamp.step + rollback_steps) return ok();  // the group resumed from another state
  const auto good = kept_.find(retreat.to.step);
  if (good == kept_.end())
    return Error{ErrorCode::bad_record, "the group rolls back to " + text_of(retreat.to) +
                                            ", which the rounds before do not lead to"};
  auto model = devices::ModelState::create(now_.model.layout(), device_);
  if (!model) return model.error();
  AgreedState next{std::move(model).value(), {}, 0, {}};
  next.copy_from(good->second.state);
  resume_from(next, now_, retreat.view, retreat.remembered);
  now_.copy_from(next);
  for (auto& [id, residual] : residuals_) residual.forget();
  models_.follow_group();
  return ok();
}

Result<bool> ReplayState::enter_next(std::uint64_t step) {
  ++entered_;
  if (const auto retreat = std::exchange(retreat_, std::nullopt))
    if (auto there = roll_back(*retreat, step); !there) return there.error();
  const auto kept = kept_.find(step);
  const bool known = step == now_.stamp.step || kept != kept_.end();
  if (known && step != now_.stamp.step) {
    now_.copy_from(kept->second.state);
    residuals_ = kept->second.residuals;
    if (auto restored = models_.restore(kept->second.models, now_); !restored) return restored.error();
  }
  // Copies of later steps are obsolete: the group repeats those steps.
  std::erase_if(kept_, [&](const auto& copy) { return copy.first > step || !needed(copy.first); });
  return known;
}

}  // namespace rivulet::runtime
