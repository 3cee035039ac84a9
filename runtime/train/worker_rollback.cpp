#include <utility>

#include "runtime/state/rollback.h"
#include "runtime/state/state_image.h"
#include "runtime/train/worker.h"
#include "sync/policy/divergence.h"

// Rolls back after the group has found that the model has diverged.
namespace rivulet::runtime {
namespace {

using sync::policy::Retreat;

constexpr Duration look_for_it_every = std::chrono::milliseconds(20);
constexpr Duration longest_read = std::chrono::seconds(60);  ///< limit for a disk that does not answer
constexpr Duration reload_once_in = std::chrono::minutes(10);

}  // namespace

/// Ends the view; all devices do so in the same round.
Turn Worker::retreat() {
  const sync::policy::Decision decision = view_->session->plan().now;
  const auto memory = view_->session->policy_state().memory;
  const std::uint64_t view = view_->spec.number;
  report_.metrics().divergences.add(1);
  if (decision.retreat == Retreat::give_up)
    return end(Error{ErrorCode::invalid_config,
                     "the model has diverged again, after the group has rolled back to a good checkpoint " +
                         std::to_string(static_cast<int>(sync::policy::Divergence::tries_most)) +
                         " times, with a smaller learning rate each time: lower train.optimizer.lr, or check "
                         "the rows. To start from a good state, use 'rivulet checkpoint restore' with " +
                         words_of_good({decision.back_lineage, decision.back_step})});
  going_back_ =
      GoingBack{{decision.back_lineage, decision.back_step}, view, parts_.clock.now() + longest_read, memory};
  parts_.log.write(
      Level::error, "the model has diverged: the group rolls back",
      {{"from", text_of(parts_.state->stamp)},
       {"to", words_of_good(going_back_->to)},
       {"rows_since", sync::policy::Divergence::tries(memory) > 1 ? "skipped" : "read again"},
       {"learning_rate_factor", std::to_string(sync::policy::Divergence::learning_rate_factor(memory))}});
  parts_.status.mark("the model has diverged: the group rolls back to " + words_of_good(going_back_->to));
  view_.reset();
  put_batch_back();
  parts_.status.world = 0;
  parts_.status.state.store(NodeState::forming);
  parts_.status.set_phrase("rolling back: the model has diverged");
  if (going_back_->to.step > 0 && checkpoints_.saves()) checkpoints_.fetch(going_back_->to);
  phase_ = Phase::going_back;
  return again();
}

/// The states of the devices differ, and no majority says which is right: all go back to the committed one. A
/// device that cannot read it adopts the others' state.
Turn Worker::reload_committed(const Error& error) {
  const TimePoint now = parts_.clock.now();
  const bool twice = control_.reloaded_at && now - *control_.reloaded_at < reload_once_in;
  if (twice) return end(error);
  control_.reloaded_at = now;
  const Stamp committed = parts_.membership.committed().stamp;
  if (!checkpoints_.saves()) return form_again(ViewEnd::wrong, error.message);
  parts_.log.write(Level::error, "the states of the devices differ: all go back to the committed state",
                   {{"why", error.message}, {"to", text_of(committed)}});
  going_back_ = GoingBack{.to = committed, .until = now + longest_read, .reloads = true};
  if (committed.step > 0) checkpoints_.fetch(committed);
  parts_.status.world = 0;
  parts_.status.state.store(NodeState::forming);
  parts_.status.set_phrase("going back to the committed state: the states of the devices differ");
  phase_ = Phase::going_back;
  return again();
}

Turn Worker::roll_back() {
  if (end_requested()) return leave_alone();
  if (parts_.donor != nullptr) parts_.donor->drop();
  auto good = rollback_target();
  if (!good) return end(good.error());
  const bool may_come =
      checkpoints_.saves() && checkpoints_.fetching() && parts_.clock.now() < going_back_->until;
  if (!good.value() && may_come) return later(look_for_it_every);
  const bool reloads = going_back_->reloads;
  if (good.value()) {
    if (!reloads) resume_from(*good.value(), *parts_.state, going_back_->view, going_back_->memory);
    if (auto there = entry_.roll_back(std::move(*good.value())); !there) return end(there.error());
  } else if (auto kept = reloads ? ok() : remember_retreat(); !kept) {
    return end(kept.error());
  }
  going_back_.reset();
  health_.rolled_back();
  scores_.begin();
  return reloads ? form_again(ViewEnd::wrong, "the states of the devices differed")
                 : form_again(ViewEnd::rolled_back, "the model has diverged");
}

/// Call if no device has the good state. Records the failed attempt in the agreed memory.
Status Worker::remember_retreat() {
  auto own = parts_.state.own(parts_.device);
  if (!own) return own.error();
  stay_in(*own.value(), going_back_->view, going_back_->memory);
  return ok();
}

/// Returns the state to roll back to; nullopt if this device does not have it or has not read it yet. Another
/// device may have it.
Result<std::optional<AgreedState>> Worker::rollback_target() {
  if (going_back_->to.step == 0) {
    auto model = devices::ModelState::create(parts_.trainer.layout(), parts_.device);
    if (!model) return model.error();
    AgreedState first{std::move(model).value(), {}, 0, {}};
    if (auto begun = parts_.trainer.initialize(first.model, config_.model_seed); !begun) return begun.error();
    return std::optional(std::move(first));
  }
  if (!checkpoints_.saves()) return std::optional<AgreedState>();
  auto image = checkpoints_.take_fetched();
  if (!image) return std::optional<AgreedState>();
  const auto missing = [&](const Error& why) {
    parts_.log.write(Level::warn, "this device lacks the good checkpoint, and requests it from the others",
                     {{"state", text_of(going_back_->to)}, {"why", why.message}});
    return std::optional<AgreedState>();
  };
  if (!*image) return missing(image->error());
  auto decoded = decode_state(image->value(), {config_.owner, parts_.trainer.layout(), parts_.device});
  if (!decoded) return missing(decoded.error());
  if (decoded.value().state.stamp != going_back_->to)
    return missing({ErrorCode::bad_record, "the file contains a different state"});
  if (auto whole = check_digest(decoded.value(), parts_.device); !whole) return missing(whole.error());
  return std::optional(std::move(decoded).value().state);
}

}  // namespace rivulet::runtime
