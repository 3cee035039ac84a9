#include <algorithm>

#include "runtime/worker.h"

// Saving the agreed state and what follows from it: SAVED, the commit rule, offsets that may be published.
namespace rivulet::runtime {
namespace {

constexpr std::size_t uncommitted_max = 16;

}  // namespace

bool Worker::checkpoint_is_due(TimePoint now) const {
  return parts_.checkpoints != nullptr && parts_.state.stamp.step > saved_.step &&
         now - saved_at_ >= config_.checkpoint_interval;
}

/// At the end of a checkpoint round. Offsets of the own partitions may be published once the group has
/// committed it.
void Worker::save_state() {
  if (parts_.checkpoints == nullptr || config_.dry_run || parts_.state.stamp == saved_) return;
  saved_at_ = parts_.clock.now();
  if (!parts_.checkpoints->offer(parts_.state)) return;
  saved_ = parts_.state.stamp;
  SavedOffsets entry{saved_, {}};
  for (const auto& [partition, progress] : parts_.state.partitions)
    if (parts_.commits.owns(partition)) entry.offsets.push_back({partition, progress.next.offset});
  uncommitted_.push_back(std::move(entry));
  if (uncommitted_.size() > uncommitted_max) uncommitted_.pop_front();
}

void Worker::watch_saved() {
  if (parts_.checkpoints == nullptr) return;
  if (const auto saved = parts_.checkpoints->take_saved())
    if (auto said = parts_.membership.say_saved(saved->stamp, saved->digest, saved->file_hash); !said)
      parts_.log.write(Level::warn, "a saved state could not be announced",
                       {{"error", said.error().message}});
  const Stamp committed = parts_.membership.fold().committed.stamp;
  bool news = false;
  while (!uncommitted_.empty() && uncommitted_.front().stamp <= committed) {
    for (const auto& next : uncommitted_.front().offsets)
      parts_.commits.covered(next.partition, {next.offset, 0});
    uncommitted_.pop_front();
    news = true;
  }
  if (!news) return;
  parts_.checkpoints->committed(committed);
  parts_.ingest.notify();
}

/// After the last round of a view: the checkpointer may still have been busy with an earlier state.
bool Worker::last_is_committed() {
  if (parts_.checkpoints == nullptr || config_.dry_run) return true;
  if (!parts_.checkpoints->busy()) save_state();
  return saved_ == parts_.state.stamp && parts_.membership.fold().committed.stamp >= saved_;
}

}  // namespace rivulet::runtime
