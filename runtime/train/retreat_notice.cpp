#include "runtime/train/retreat_notice.h"

#include <fmt/format.h>

#include "runtime/state/rollback.h"
#include "sync/policy/divergence.h"

namespace rivulet::runtime {
namespace {

constexpr Duration shown_for = std::chrono::minutes(10);

}  // namespace

void RetreatNotice::show(std::span<const sync::policy::ControllerMemory> agreed) {
  using sync::policy::Divergence;
  const std::uint32_t tries = Divergence::tries(agreed);
  if (tries == 0 && shown_.empty()) return;
  const TimePoint now = clock_.now();
  if (tries > tries_) {
    until_ = now + shown_for;
    rolled_back_to_ = words_of_good(Divergence::good(agreed));
  }
  tries_ = tries;
  std::string phrase;
  if (tries > 0 || now < until_)
    phrase = fmt::format(
        "the model diverged: the group rolled back to {} and scaled the learning rate by {:.3g}; {}",
        rolled_back_to_, Divergence::learning_rate_factor(agreed),
        tries > 0 ? "new rows have not confirmed this yet" : "new rows have confirmed this");
  if (phrase == shown_) return;
  shown_ = phrase;
  status_.set_rolled_back(std::move(phrase));
}

}  // namespace rivulet::runtime
