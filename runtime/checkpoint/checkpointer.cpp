#include "runtime/checkpoint/checkpointer.h"

#include <array>
#include <utility>

#include "sync/policy/divergence.h"

namespace rivulet::runtime {
namespace {

constexpr int disk_failures_max = 2;

}  // namespace

Checkpointer::Checkpointer(CheckpointFolder folder, std::size_t keep, StateOwner owner,
                           devices::ModelState space, const Parts& parts)
    : keep_(keep),
      owner_(std::move(owner)),
      parts_(parts),
      written_(parts.metrics.counter("checkpoints_total", {{"result", "ok"}})),
      skipped_(parts.metrics.counter("checkpoints_total", {{"result", "skipped"}})),
      failed_(parts.metrics.counter("checkpoints_total", {{"result", "failed"}})),
      duration_(parts.metrics.histogram("checkpoint_duration_seconds")),
      size_(parts.metrics.gauge("checkpoint_size_bytes")),
      last_(parts.metrics.gauge("last_checkpoint_timestamp_seconds")),
      slot_{std::move(space), {}, 0, {}},
      folder_(std::move(folder)) {}

bool Checkpointer::offer(const AgreedState& state, const PrivateView& kept, std::optional<Score> score) {
  if (busy()) {
    skipped_.add(1);
    return false;
  }
  slot_.copy_from(state);
  score_slot_ = score;
  private_slot_.stamp = state.stamp;
  private_slot_.scalar = state.model.layout().scalar;
  private_slot_.residual.assign(kept.residual.begin(), kept.residual.end());
  private_slot_.of_deltas = kept.of_deltas;
  private_slot_.local_steps = kept.local_steps;
  private_slot_.local_norm = kept.local_norm;
  private_slot_.local_arrays.resize(kept.local_arrays.size());
  for (std::size_t i = 0; i < kept.local_arrays.size(); ++i)
    private_slot_.local_arrays[i].assign(kept.local_arrays[i].begin(), kept.local_arrays[i].end());
  state_.store(State::requested, std::memory_order_release);
  parts_.wake.notify();
  return true;
}

std::optional<SavedState> Checkpointer::take_saved() {
  const std::lock_guard lock(mutex_);
  return std::exchange(saved_, std::nullopt);
}

void Checkpointer::fetch(const Stamp& stamp) {
  {
    const std::lock_guard lock(mutex_);
    requested_file_ = stamp;
    fetched_.reset();
  }
  parts_.wake.notify();
}

bool Checkpointer::fetching() {
  const std::lock_guard lock(mutex_);
  return requested_file_ || fetched_;
}

std::optional<Result<std::vector<std::byte>>> Checkpointer::take_fetched() {
  const std::lock_guard lock(mutex_);
  return std::exchange(fetched_, std::nullopt);
}

bool Checkpointer::read_requested() {
  std::optional<Stamp> wanted;
  {
    const std::lock_guard lock(mutex_);
    wanted = requested_file_;
  }
  if (!wanted) return false;
  auto file = folder_.read(*wanted, state_image_max(slot_.model.layout()));
  const std::lock_guard lock(mutex_);
  if (requested_file_ != wanted) return true;  // another request arrived
  fetched_ = std::move(file);
  requested_file_.reset();
  return true;
}

void Checkpointer::committed(const Stamp& stamp) {
  const std::lock_guard lock(mutex_);
  committed_ = std::max(committed_, stamp);
}

Turn Checkpointer::step() {
  if (busy()) {
    write();
    state_.store(State::resting, std::memory_order_release);
    parts_.worker.notify();
    return {.work = 1};
  }
  if (read_requested()) {
    parts_.worker.notify();
    return {.work = 1};
  }
  return {.wake_at = parts_.clock.now() + std::chrono::milliseconds(100)};
}

/// Reports a failed write. Older files stay. The message names the file and the system's error.
void Checkpointer::failed(const Error& error) {
  failed_.add(1);
  disk_failures_ = error.code == ErrorCode::io ? disk_failures_ + 1 : 0;
  const bool last = disk_failures_ == disk_failures_max;
  parts_.log.write(Level::error,
                   "no checkpoint was written: this device does not count towards committing this state",
                   {{"state", text_of(slot_.stamp)},
                    {"error", error.message},
                    {"next", last ? "writing failed twice: no more checkpoints until this device restarts"
                                  : "the next checkpoint will be attempted"}});
}

/// Writes the private part before its state, so that no state exists without it. A failure loses only this
/// local data.
void Checkpointer::write_private() {
  if (private_slot_.empty()) return folder_.remove_private(slot_.stamp);
  if (auto written = folder_.write_private(private_slot_); !written)
    parts_.log.write(Level::warn, "cannot save this device's residual with its checkpoint",
                     {{"state", text_of(slot_.stamp)}, {"error", written.error().message}});
}

/// Writes the note after its state's file. A state without a note is equally usable.
void Checkpointer::write_note() {
  if (auto written = folder_.write_note(slot_.stamp, {unix_time_ms(), score_slot_}); !written)
    parts_.log.write(Level::warn, "cannot write the time and score of a checkpoint",
                     {{"state", text_of(slot_.stamp)}, {"error", written.error().message}});
}

void Checkpointer::write() {
  if (disk_failures_ >= disk_failures_max) {
    failed_.add(1);
    return;
  }
  const TimePoint before = parts_.clock.now();
  write_private();
  const auto digest = digest_of(slot_, parts_.device);
  const auto file = digest ? folder_.write(owner_, slot_, digest.value())
                           : Result<CheckpointFolder::Written>(digest.error());
  if (!file) {
    failed(file.error());
    return;
  }
  disk_failures_ = 0;
  written_.add(1);
  duration_.observe(to_seconds(parts_.clock.now() - before));
  size_.set(static_cast<double>(file.value().bytes));
  last_.set(static_cast<double>(unix_time_ms()) / 1000.0);
  Stamp committed;
  {
    const std::lock_guard lock(mutex_);
    saved_ = SavedState{slot_.stamp, digest.value().hex(), file.value().hash};
    committed = committed_;
  }
  write_note();
  using sync::policy::Divergence;
  const std::array wanted{Divergence::good(slot_.controllers), Divergence::on_trial(slot_.controllers)};
  folder_.prune(keep_, committed, owner_.job, wanted);
}

}  // namespace rivulet::runtime
