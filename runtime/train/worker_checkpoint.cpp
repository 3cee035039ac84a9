#include "runtime/train/worker.h"

// Saving the agreed state and what follows from it: SAVED, the commit rule, offsets that may be published.
namespace rivulet::runtime {

/// Also without a step since the last one: a state that a later view has adopted is another stamp, and what
/// was not committed in its own view can be committed only as that.
bool Worker::checkpoint_is_due(TimePoint now) const {
  return parts_.checkpoints != nullptr && parts_.state->stamp > saved_ && parts_.state->stamp.step > 0 &&
         now - saved_at_ >= config_.checkpoint_interval;
}

/// At the end of a checkpoint round. Offsets of the own partitions may be published once the group has
/// committed it.
void Worker::save_state() {
  if (parts_.checkpoints == nullptr || config_.dry_run || parts_.state->stamp == saved_) return;
  saved_at_ = parts_.clock.now();
  if (!parts_.checkpoints->offer(*parts_.state)) return;
  saved_ = parts_.state->stamp;
  uncommitted_.saved(*parts_.state, parts_.commits);
}

void Worker::watch_announcing(TimePoint now) {
  const auto& membership = parts_.membership;
  const auto news = announcing_.look(now, membership.announcing(), membership.announced());
  if (news == AnnounceWatch::News::again) {
    parts_.status.set_control_trouble("");
    parts_.log.write(Level::info, "saved states are announced again");
  }
  if (news != AnnounceWatch::News::silent) return;
  const std::string why = "saved states do not get into the control topic" +
                          (control_words_.empty() ? std::string() : ": " + control_words_);
  parts_.status.set_control_trouble(why);
  parts_.log.write(Level::warn, why);
}

void Worker::watch_saved() {
  if (parts_.checkpoints == nullptr) return;
  watch_announcing(parts_.clock.now());
  if (const auto saved = parts_.checkpoints->take_saved())
    if (auto said = parts_.membership.say_saved(saved->stamp, saved->digest, saved->file_hash); !said)
      parts_.log.write(Level::warn, "a saved state could not be announced",
                       {{"error", said.error().message}});
  const Stamp committed = parts_.membership.committed().stamp;
  if (uncommitted_.committed(committed, parts_.commits)) parts_.ingest.notify();
  if (committed == committed_) return;
  committed_ = committed;
  parts_.checkpoints->committed(committed);
}

/// After the last round of a view: the checkpointer may still have been busy with an earlier state.
bool Worker::last_is_committed() {
  if (parts_.checkpoints == nullptr || config_.dry_run) return true;
  if (!parts_.checkpoints->busy()) save_state();
  return saved_ == parts_.state->stamp && parts_.membership.committed().stamp >= saved_;
}

}  // namespace rivulet::runtime
