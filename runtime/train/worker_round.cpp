// What a plan means for state and rows: the second half of Worker.
#include <algorithm>

#include "runtime/state/announced.h"
#include "runtime/state/round_update.h"
#include "runtime/train/worker.h"
#include "runtime/train/worker_meters.h"

namespace rivulet::runtime {
namespace {

using sync::policy::Mode;

/// out = a - b over [0, count).
template <class T>
void subtract(std::span<const T> a, std::span<const T> b, std::span<T> out) {
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = a[i] - b[i];
}

void delta_of(const GradientView& local, const GradientView& agreed, const GradientView& out) {
  if (out.scalar == Scalar::f32)
    subtract<float>(local.as<float>(), agreed.as<float>(), out.as<float>());
  else
    subtract<double>(local.as<double>(), agreed.as<double>(), out.as<double>());
}

void add_to(const GradientView& sum, const GradientView& v) {
  const auto add = [](auto into, auto from) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
  };
  if (sum.scalar == Scalar::f32)
    add(sum.as<float>(), v.as<float>());
  else
    add(sum.as<double>(), v.as<double>());
}

void copy_to(const GradientView& to, const GradientView& from) {
  const auto bytes = from.host_bytes();
  std::copy(bytes.begin(), bytes.end(), to.host_bytes().begin());
}

std::uint64_t dropped_so_far(const NodeStatus& status) {
  std::uint64_t n = 0;
  for (const auto& reason : status.rows_dropped) n += reason.load(std::memory_order_relaxed);
  return n;
}

}  // namespace

sync::Facts Worker::my_facts(TimePoint now) {
  sync::Facts f;
  f.step = parts_.state->stamp.step;
  f.agreed_rows = parts_.state->rows;
  const auto& limit = config_.stop_after;
  f.stop_at_step = limit.rounds > 0 ? counts_from_.step + limit.rounds : 0;
  f.stop_at_rows = limit.rows > 0 ? counts_from_.rows + limit.rows : 0;
  f.rows = batch_finite_ ? static_cast<std::uint32_t>(batch_->rows()) : 0;
  f.rows_since_sync = rows_since_sync_;
  f.queue_rows = parts_.rows.waiting();
  f.stream_rate = parts_.status.stream_rate.load(std::memory_order_relaxed);
  f.compute_seconds = compute_seconds_;
  f.wait_seconds = wait_seconds_;
  f.sync_seconds = sync_seconds_;
  f.loss_sum = batch_finite_ ? report_.loss_sum : 0;
  f.correct = batch_finite_ ? report_.correct : 0;
  f.gradient_norm2 = report_.gradient_norm2;
  f.rows_dropped = dropped_so_far(parts_.status);
  f.rows_max = std::min(batch_->rows_max(), parts_.rows.capacity());
  const double seconds = to_seconds(now - training_since_);
  const bool time_is_up = config_.stop_after.seconds > 0 && seconds >= config_.stop_after.seconds;
  f.flags = (parts_.stop.load() > 0 ? sync::flag_leaving : 0U) |
            (time_is_up || dry_run_is_over() || parts_.membership.stop_asked() ? sync::flag_stop : 0U) |
            (batch_finite_ ? 0U : sync::flag_nonfinite) | (incomplete_ ? sync::flag_incomplete : 0U) |
            (config_.dry_run ? sync::flag_dry_run : 0U) |
            (checkpoint_is_due(now) ? sync::flag_checkpoint : 0U);
  if (round_in_view_ % config_.digest_every == 0) {
    f.flags |= sync::flag_digest;
    f.digest = digest_;
  }
  if (!announced_.intervals.empty()) f.interval = announced_.intervals.front();
  return f;
}

/// What this round's rows amount to, with all that was passed over around them.
Status Worker::announce() {
  auto account = parts_.ledger.account(batch_->own_tags(), next_offsets_, generation_);
  if (!account) return account.error();
  if (!batch_finite_) buffer::drop_trained(account.value());
  announced_ = pending_;
  return buffer::append(announced_, account.value());
}

sync::FactsSection Worker::my_section() const {
  sync::FactsSection section;
  const auto& all = announced_.intervals;
  if (all.size() > 1) section.more_intervals.assign(all.begin() + 1, all.end());
  section.runs = announced_.runs;
  return section;
}

/// A dry run applies nothing, so the plan never sees its limits reached: this round's rows are looked at
/// last.
bool Worker::dry_run_is_over() const {
  const auto& limit = config_.stop_after;
  if (!config_.dry_run || batch_->rows() == 0) return false;
  return (limit.rows > 0 && dry_run_rows_ + batch_->rows() >= limit.rows) ||
         (limit.rounds > 0 && dry_run_rounds_ + 1 >= limit.rounds);
}

/// Computed from the memory in every digest round, also when no round was applied since the last: what
/// changed by itself is what the digest is for.
Status Worker::refresh_digest() {
  if (round_in_view_ % config_.digest_every != 0) return ok();
  auto digest = parts_.state.digest(view_->session->last_round()->work, parts_.device);
  if (!digest) return digest.error();
  digest_ = digest.value();
  parts_.status.set_digest(digest_.hex());
  return ok();
}

Status Worker::carry_out_plan() {
  const auto& plan = view_->session->plan();
  switch (plan.now.mode) {
    case Mode::gradients:
      if (view_->session->early() == sync::SpeculationOutcome::used) break;
      if (auto offered = prepare_gradient(); !offered) return offered;
      break;
    case Mode::delta:
      if (auto offered = prepare_delta(); !offered) return offered;
      break;
    case Mode::local:
      if (auto stepped = local_step(); !stepped) return stepped;
      keep_pending(Fate::trained);
      return ok();
    case Mode::skip:
      dry_run_rows_ += batch_->own_rows();
      dry_run_rounds_ += batch_->own_rows() > 0 ? 1 : 0;
      keep_pending(Fate::dry_run);
      if (config_.dry_run) pending_ = {};  // nothing will ever be folded
      return ok();
    case Mode::hold:
      if (!batch_finite_) keep_pending(Fate::dropped);
      return ok();
    case Mode::idle:
      if (!config_.dry_run && only_offsets_move(view_->session->table())) {
        if (auto folded = fold_table(); !folded) return folded;
        settle_batch(Fate::dropped);
      } else if (batch_->own_rows() > 0) {
        keep_pending(Fate::dropped);  // non-finite everywhere: used up, announced later
      }
      return ok();
  }
  view_->session->begin_payload(mine_);
  phase_ = Phase::paying;
  return ok();
}

Status Worker::prepare_gradient() {
  auto host = parts_.device.to_host(contribution_);
  if (!host) return host.error();
  mine_ = host.value();
  return ok();
}

/// One step of this device alone, on a private copy; the agreed state waits for the next aggregating round.
Status Worker::local_step() {
  if (batch_->rows() == 0 || !batch_finite_) return ok();
  if (!local_) {
    auto copy = devices::ModelState::create(parts_.trainer.layout(), parts_.device);
    if (!copy) return copy.error();
    local_.emplace(std::move(copy).value());
    local_->copy_from(parts_.state->model);
  }
  const double factor = view_->session->plan().now.learning_rate_factor;
  auto host = parts_.device.to_host(contribution_);
  if (!host) return host.error();
  auto applied = devices::apply_gradient(config_.optimizer, *local_, host.value(), factor,
                                         parts_.state->stamp.step + ++local_steps_, parts_.device);
  if (!applied) return applied.error();
  rows_since_sync_ += static_cast<std::uint32_t>(batch_->rows());
  return ok();
}

/// What travels in parameters mode: this round's own step first, then the movement since the last aggregating
/// round.
Status Worker::prepare_delta() {
  if (auto stepped = local_step(); !stepped) return stepped;
  const auto& layout = parts_.trainer.layout();
  mine_ = contribution_;
  if (!contribution_.host_readable())
    return Error{ErrorCode::unavailable, "parameters mode needs a device whose memory the host can read"};
  const auto& from = local_ ? *local_ : parts_.state->model;
  delta_of(from.parameters(), parts_.state->model.parameters(), mine_.slice(0, layout.parameters));
  copy_to(mine_.slice(layout.parameters, layout.buffers), from.buffers());
  return ok();
}

/// What became of an agreed sum.
struct Worker::Step {
  bool finite = false;
  double gradient_norm = 0;
  double learning_rate = 0;
  bool operator==(const Step&) const = default;
};

/// False: the agreed sum is not finite; its rows are used up, and nothing was applied.
Result<bool> Worker::apply_agreed() {
  const auto made = parts_.state.advance<Step>(view_->session->last_round()->work, parts_.device,
                                               [this](AgreedState& next) { return make_step(next); });
  if (!made) return made.error();
  const Step& step = made.value();
  settle_folded(step.finite);
  settle_batch(step.finite ? Fate::trained : Fate::dropped);
  if (!step.finite) {
    meters_->nonfinite_agreed.add(1);
    meters_->steps_skipped.add(1);
    return false;
  }
  if (view_->session->plan().now.mode == Mode::gradients) {
    meters_->grad_norm.set(step.gradient_norm);
    meters_->learning_rate.set(step.learning_rate);
  }
  if (parts_.status.first_step_s.load() < 0)
    parts_.status.first_step_s.store(config_.age_at_start_s + to_seconds(parts_.clock.now() - created_));
  meters_->steps_applied.add(1);
  meters_->last_step.set(static_cast<double>(unix_time_ms()) / 1000.0);
  return true;
}

/// The round becomes part of the state: what was announced with it, and the sum if it is finite. Pure in the
/// state and the round: also where others take what this device makes.
Result<Worker::Step> Worker::make_step(AgreedState& next) {
  Step made{.finite = all_finite(view_->session->agreed())};
  if (made.finite && view_->session->plan().now.mode == Mode::gradients) {
    if (auto applied = apply_gradients(next, made); !applied) return applied.error();
  } else if (made.finite) {
    apply_parameters(next);
  }
  fold_round(next, view_->session->table(), view_->spec.number, made.finite);
  return made;
}

Status Worker::apply_gradients(AgreedState& next, Step& made) {
  auto applied = devices::apply_gradient(config_.optimizer, next.model, view_->session->agreed(),
                                         view_->session->plan().now.learning_rate_factor, next.stamp.step + 1,
                                         parts_.device);
  if (!applied) return applied.error();
  made.gradient_norm = applied.value().gradient_norm;
  made.learning_rate = applied.value().learning_rate;
  return ok();
}

void Worker::apply_parameters(AgreedState& next) {
  const GradientView& agreed = view_->session->agreed();
  const auto& layout = parts_.trainer.layout();
  add_to(next.model.parameters(), agreed.slice(0, layout.parameters));
  copy_to(next.model.buffers(), agreed.slice(layout.parameters, layout.buffers));
}

/// A round that only moves offsets.
Status Worker::fold_table() {
  const sync::Round& round = *view_->session->last_round();
  auto folded = parts_.state.advance<std::monostate>(round.work, parts_.device, [&](AgreedState& next) {
    fold_round(next, round.table, view_->spec.number, true);
    return ok();
  });
  if (!folded) return folded;
  settle_folded(true);
  return ok();
}

/// What was announced with the round is no longer this device's own.
void Worker::settle_folded(bool trained) {
  if (parts_.checkpoints == nullptr)  // nothing is saved: what is agreed is as safe as it will ever be
    for (const RowInterval& rows : announced_.intervals) parts_.commits.covered(rows.partition, rows.next);
  // Local steps since the last agreement are in the sum, or go with the rows they came from.
  if (!trained || view_->session->plan().now.mode == Mode::delta) {
    local_.reset();
    local_steps_ = 0;
    rows_since_sync_ = 0;
  }
  pending_ = {};
  move_next_offsets();
}

/// What was announced is used.
void Worker::move_next_offsets() {
  for (const RowInterval& interval : announced_.intervals) next_offsets_[interval.partition] = interval.next;
  parts_.ledger.settle(next_offsets_);
}

/// The rows of the batch are done with: slots are free, counters say what became of them.
void Worker::settle_batch(Fate fate) {
  const std::size_t own = batch_->own_rows();
  if (!batch_finite_) fate = Fate::dropped;
  if (fate == Fate::trained) {
    observe_delay();
    parts_.status.rows_trained.fetch_add(own, std::memory_order_relaxed);
    meters_->rows_trained.add(static_cast<double>(own));
    if (own > 0) parts_.status.batches.fetch_add(1, std::memory_order_relaxed);
  } else if (fate == Fate::dropped) {
    const auto reason = static_cast<std::size_t>(DropReason::nonfinite_batch);
    parts_.status.rows_dropped[reason].fetch_add(own, std::memory_order_relaxed);
    meters_->dropped_nonfinite.add(static_cast<double>(own));
    if (own > 0) warn_of_nonfinite(own);
  }
  batch_->settle(parts_.rows);
  computed_ = false;
  batch_finite_ = true;
  if (own > 0 && parts_.rows.is_worth_filling()) parts_.ingest.notify();
}

/// A model that has diverged drops every batch: said, but not in every round.
void Worker::warn_of_nonfinite(std::size_t rows) {
  constexpr Duration quiet = std::chrono::seconds(10);
  const TimePoint now = parts_.clock.now();
  if (now < warn_again_at_) return;
  warn_again_at_ = now + quiet;
  const auto reason = static_cast<std::size_t>(DropReason::nonfinite_batch);
  parts_.log.write(Level::warn, "rows dropped: their loss or gradient is not finite; has the model diverged?",
                   {{"rows", std::to_string(rows)},
                    {"rows_in_all", std::to_string(parts_.status.rows_dropped[reason].load())},
                    {"step", std::to_string(parts_.state->stamp.step)}});
}

/// From the record's timestamp to its training, of the batch's oldest row.
void Worker::observe_delay() {
  const auto tags = batch_->view().tags;
  if (tags.empty() || tags.front().timestamp_ms <= 0) return;
  meters_->record_delay.observe(static_cast<double>(unix_time_ms() - tags.front().timestamp_ms) / 1000.0);
}

/// The round used rows but did not aggregate: they are announced with the next round that does.
void Worker::keep_pending(Fate fate) {
  pending_ = announced_;
  move_next_offsets();
  settle_batch(fate);
}

}  // namespace rivulet::runtime
