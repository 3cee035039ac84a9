#include "runtime/train/checkpoint_cycle.h"

#include <algorithm>
#include <cmath>

namespace rivulet::runtime {

bool CheckpointCycle::is_due(TimePoint now, const AgreedState& state) const {
  return saves() && state.stamp > saved_ && state.stamp.step > 0 && now - saved_at_ >= parts_.interval;
}

void CheckpointCycle::save(const AgreedState& state, std::span<const PartitionId> own) {
  if (!saves() || parts_.dry_run || state.stamp == saved_) return;
  saved_at_ = parts_.clock.now();
  begins_once(parts_.status.unsaved_since_ns);
  if (!parts_.checkpoints->offer(state, kept_beside(state), score())) return;
  saved_ = state.stamp;
  uncommitted_.saved(state, own);
}

void CheckpointCycle::begins_once(std::atomic<std::int64_t>& since_ns) const {
  if (since_ns.load() == 0) since_ns.store(parts_.clock.now().time_since_epoch().count());
}

std::optional<Score> CheckpointCycle::score() const {
  const NodeStatus& status = parts_.status;
  if (const double held_out = status.held_out_accuracy.load(); held_out >= 0)
    return Score{Measure::held_out_accuracy, held_out};
  if (!status.window_full.load()) return std::nullopt;
  if (const double accuracy = status.accuracy.load(); accuracy >= 0)
    return Score{Measure::accuracy, accuracy};
  const double loss = status.loss.load();
  return std::isfinite(loss) ? std::optional(Score{Measure::loss, loss}) : std::nullopt;
}

PrivateView CheckpointCycle::kept_beside(const AgreedState& state) const {
  PrivateView kept{.local_steps = parts_.model.kept_steps(),
                   .local_norm = parts_.model.kept_norm(),
                   .local_arrays = parts_.model.kept()};
  if (parts_.residual.stamp() != state.stamp) return kept;
  kept.residual = parts_.residual.numbers();
  kept.of_deltas = parts_.residual.of_deltas();
  return kept;
}

void CheckpointCycle::watch_announcing(TimePoint now, const std::string& control_words) {
  const auto& membership = parts_.membership;
  const auto news = announcing_.look(now, membership.announcing(), membership.announced());
  if (news == AnnounceWatch::News::again) {
    parts_.status.set_control_trouble("");
    parts_.log.write(Level::info, "saved states are announced again");
  }
  if (news != AnnounceWatch::News::silent) return;
  const std::string why = "saved states do not reach the control topic" +
                          (control_words.empty() ? std::string() : ": " + control_words);
  parts_.status.set_control_trouble(why);
  parts_.log.write(Level::warn, why);
}

void CheckpointCycle::watch(const std::string& control_words) {
  if (!saves()) return;
  watch_announcing(parts_.clock.now(), control_words);
  if (const auto saved = parts_.checkpoints->take_saved()) {
    on_disk_[next_on_disk_++ % on_disk_.size()] = saved->stamp;
    parts_.status.unsaved_since_ns.store(0);
    begins_once(parts_.status.uncommitted_since_ns);
    if (auto said = parts_.membership.post_saved(saved->stamp, saved->digest, saved->file_hash); !said)
      parts_.log.write(Level::warn, "a saved state could not be announced",
                       {{"error", said.error().message}});
  }
  const Stamp committed = parts_.membership.committed().stamp;
  // A state of a view without this device need not follow the states that this device has saved.
  if (committed.lineage > view_) uncommitted_.forget();
  if (uncommitted_.committed(committed, parts_.commits)) parts_.ingest.notify();
  if (committed == committed_) return;
  committed_ = committed;
  parts_.status.uncommitted_since_ns.store(0);
  parts_.checkpoints->committed(committed);
}

bool CheckpointCycle::is_on_disk(const Stamp& stamp) const {
  return std::ranges::count(on_disk_, stamp) > 0;
}

bool CheckpointCycle::last_is_committed(const AgreedState& state, std::span<const PartitionId> own) {
  if (!saves() || parts_.dry_run) return true;
  if (!busy()) save(state, own);
  return is_saved(state) && parts_.membership.committed().stamp >= saved_;
}

}  // namespace rivulet::runtime
