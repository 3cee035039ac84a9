#include "runtime/state/rollback.h"

#include <algorithm>

#include "sync/policy/divergence.h"

namespace rivulet::runtime {

namespace {

void remember(AgreedState& state, std::span<const sync::policy::ControllerMemory> remembered) {
  const auto name = sync::policy::Divergence::name;
  std::erase_if(state.controllers, [&](const auto& memory) { return memory.name == name; });
  const auto own = std::ranges::find(remembered, name, &sync::policy::ControllerMemory::name);
  if (own != remembered.end()) state.controllers.push_back(*own);
}

}  // namespace

std::string words_of_good(const Stamp& good) {
  return good.step > 0 ? text_of(good) : "the initial model of the job";
}

void resume_from(AgreedState& good, const AgreedState& left, std::uint64_t view,
                 std::span<const sync::policy::ControllerMemory> remembered) {
  good.stamp = {view, left.stamp.step + rollback_steps};
  if (sync::policy::Divergence::tries(remembered) > 1) {
    good.rows = left.rows;
    good.partitions = left.partitions;
  }
  remember(good, remembered);
}

void stay_in(AgreedState& left, std::uint64_t view,
             std::span<const sync::policy::ControllerMemory> remembered) {
  left.stamp = {view, left.stamp.step + steps_kept};
  remember(left, remembered);
}

}  // namespace rivulet::runtime
