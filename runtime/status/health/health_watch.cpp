#include "runtime/status/health/health_watch.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/status/health/unclaimed.h"

namespace rivulet::runtime {
namespace {

constexpr Duration judge_every = std::chrono::milliseconds(500);
/// Beyond this multiple of the guess loss, neither slow learning nor drift of the stream explains the loss.
constexpr double out_of_range = 10;

constexpr auto lost_reason = static_cast<std::size_t>(DropReason::nonfinite_batch);

Duration since(std::int64_t beat_ns, TimePoint now) {
  if (beat_ns == 0) return Duration(0);
  return std::max<Duration>(now.time_since_epoch() - Duration(beat_ns), Duration(0));
}

}  // namespace

HealthWatch::HealthWatch(HealthSetup setup, NodeStatus& status, MetricsSink& metrics, Logger& log)
    : setup_(setup),
      status_(status),
      log_(log),
      ready_(metrics.gauge("ready")),
      unclaimed_(metrics.gauge("unclaimed_partitions")) {
  for (const Condition& condition : conditions())
    holds_.push_back(&metrics.gauge("health_condition",
                                    {{"condition", condition.name}, {"grade", name_of(condition.grade)}}));
}

void HealthWatch::look(TimePoint now) {
  if (now < next_) return;
  next_ = now + judge_every;
  if (!began_) began_ = record_at_ = now;
  VitalSigns signs;
  signs.state = status_.state.load();
  signs.world = status_.world.load();
  signs.phrase = status_.phrase();
  look_at_stream(signs, now);
  look_at_rows(signs, now);
  look_at_partitions(signs, now);
  look_at_loss(signs, now);
  look_at_training(signs, now);
  publish(judge(signs));
}

void HealthWatch::look_at_stream(VitalSigns& signs, TimePoint now) {
  signs.source_trouble = status_.source_trouble();
  signs.topics = status_.topics();
  const std::uint64_t records = status_.records_consumed.load();
  // While rows wait, the source may not have been polled.
  if (records != records_ || status_.rows_waiting.load() > 0) {
    if (records_ > 0 && records != records_) longest_gap_ = std::max(longest_gap_, now - record_at_);
    records_ = records;
    record_at_ = now;
  }
  signs.stream = status_.stream_findings();
  signs.any_record = records > 0;
  signs.silent = now - record_at_;
  signs.longest_gap = longest_gap_;
}

BadRun HealthWatch::RunCount::look(std::uint64_t good, const Reasons& bad, TimePoint now) {
  const std::uint64_t all = std::accumulate(bad.begin(), bad.end(), std::uint64_t{0});
  const std::uint64_t before = std::accumulate(before_.begin(), before_.end(), std::uint64_t{0});
  if (good != good_) {
    good_ = good;
    before_ = bad;
    count_ = 0;
    first_.reset();
  } else if (all - before != count_) {
    count_ = all - before;
    last_ = now;
    if (!first_) first_ = now;
  }
  BadRun run{.count = count_, .any_good = good > 0};
  if (!first_) return run;
  run.lasting = now - *first_;
  run.spread = last_ - *first_;
  std::size_t most = 0;
  for (std::size_t i = 1; i < bad.size(); ++i)
    if (bad.at(i) - before_.at(i) > bad.at(most) - before_.at(most)) most = i;
  run.most_common = rivulet::name_of(static_cast<DropReason>(most));
  return run;
}

void HealthWatch::look_at_rows(VitalSigns& signs, TimePoint now) {
  const std::uint64_t consumed = status_.rows_consumed.load();
  Reasons dropped{};
  for (std::size_t i = 0; i < drop_reasons; ++i)
    dropped.at(i) = status_.rows_dropped[static_cast<DropReason>(i)];
  Reasons lost{};
  lost.at(lost_reason) = std::exchange(dropped.at(lost_reason), 0);
  // Intentionally dropped rows are neither good nor bad, but their records did contain rows.
  std::uint64_t unwanted = 0;
  for (std::size_t i = 0; i < drop_reasons; ++i)
    if (is_harmless(static_cast<DropReason>(i))) unwanted += std::exchange(dropped.at(i), 0);
  signs.refused = refused_.look(consumed, dropped, now);
  signs.lost = lost_.look(status_.rows_trained.load(), lost, now);
  // Records that wait for buffer space are not decoded yet, so waiting rows count as good.
  const std::uint64_t rows = std::accumulate(dropped.begin(), dropped.end(), consumed + unwanted);
  Reasons records{};
  records.front() = status_.records_consumed.load();
  signs.rowless = rowless_.look(rows + status_.rows_waiting.load(), records, now);
}

void HealthWatch::look_at_partitions(VitalSigns& signs, TimePoint now) {
  for (PartitionStatus& p : status_.partitions()) {
    Standing& standing = standing_[{p.topic, p.partition}];
    const bool same = standing.state == p.state && standing.reason.empty() == p.reason.empty() &&
                      standing.next_offset == p.next_offset;
    if (!same) standing = {p.state, p.reason, p.next_offset, now};
    const Duration so_long = now - standing.since;
    signs.partitions.push_back({std::move(p), so_long});
  }
  if (const auto claims = status_.claims(); claims.known)
    signs.unclaimed = unclaimed_partitions(claims, signs.topics);
  status_.set_unclaimed(signs.unclaimed);
  unclaimed_.set(static_cast<double>(signs.unclaimed.size()));
}

/// Measures how long the model has diverged. A loss that keeps halving counts as recovering.
void HealthWatch::look_at_loss(VitalSigns& signs, TimePoint now) {
  signs.loss_finite = !std::isinf(status_.loss.load());
  const double loss = status_.own_loss.load();
  const double guess = status_.guess_loss.load();
  if (std::isnan(loss) || !(guess > 0)) return;
  signs.loss = loss;
  signs.guess = guess;
  const bool out = loss > out_of_range * guess;
  if (!out) diverged_since_.reset();
  if (out && (!diverged_since_ || loss < diverged_from_ / 2)) {
    diverged_since_ = now;
    diverged_from_ = loss;
  }
  if (diverged_since_) signs.diverged = now - *diverged_since_;
}

void HealthWatch::look_at_training(VitalSigns& signs, TimePoint now) {
  const std::uint64_t steps = status_.steps.load();
  const bool has_rows = status_.rows_waiting.load() >= setup_.batch_least || status_.own_rows.load() > 0;
  if (std::exchange(steps_, steps) != steps || !has_rows || !setup_.steps_in_time)
    stalled_since_.reset();
  else if (!stalled_since_)
    stalled_since_ = now;
  if (stalled_since_) signs.stalled = now - *stalled_since_;
  signs.sync_due = from_seconds(status_.sync_due_s.load());
  signs.control_trouble = status_.control_trouble();
  signs.rolled_back = status_.rolled_back();
  signs.unsaved = since(status_.unsaved_since_ns.load(), now);
  signs.uncommitted = since(status_.uncommitted_since_ns.load(), now);
}

void HealthWatch::publish(Health health) {
  const auto all = conditions();
  const auto among = [](const std::vector<Finding>& findings, std::string_view name) {
    return std::ranges::find(findings, name, &Finding::condition);
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto now = among(health.findings, all[i].name);
    const bool holds = now != health.findings.end();
    const bool held = among(reported_, all[i].name) != reported_.end();
    holds_[i]->set(holds ? 1 : 0);
    // Membership already logs how the group forms.
    if (holds == held || all[i].grade == Grade::waits) continue;
    if (holds)
      log_.write(all[i].grade == Grade::useless ? Level::error : Level::warn, now->phrase,
                 {{"condition", std::string(all[i].name)}});
    else
      log_.write(Level::info, "condition ended", {{"condition", std::string(all[i].name)}});
  }
  ready_.set(health.ready() ? 1 : 0);
  reported_ = health.findings;
  status_.set_health(std::move(health));
}

}  // namespace rivulet::runtime
