#include "tests/support/replay/state_replay.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/decisions/decision_reader.h"
#include "runtime/state/announced.h"
#include "runtime/state/round_update.h"
#include "runtime/train/make_step.h"
#include "tests/support/replay/replay_group.h"
#include "tests/support/replay/replay_learner.h"
#include "tests/support/replay/replay_state.h"

namespace rivulet::runtime {
namespace {

using sync::policy::Mode;

using Found = Result<std::optional<Difference>>;

Found nothing_differs() {
  return std::optional<Difference>();
}

Found differs(std::string field, std::string recorded, std::string computed) {
  return std::optional(Difference{std::move(field), std::move(recorded), std::move(computed)});
}

/// Starts of the views of a log. A view that continues in a new file is one view.
Result<std::vector<ReplayState::Start>> starts_in(const std::string& log, const std::string& group) {
  auto reader = DecisionReader::open(log);
  if (!reader) return reader.error();
  std::vector<ReplayState::Start> starts;
  std::optional<std::uint64_t> back;
  while (true) {
    auto record = reader.value().next();
    if (!record) return record.error();
    if (!record.value()) return starts;
    const auto* view = std::get_if<ViewRecord>(&*record.value());
    if (view == nullptr) {
      const auto& decision = std::get<RoundRecord>(*record.value()).plan.now;
      if (decision.retreat == sync::policy::Retreat::roll_back) back = decision.back_step;
      continue;
    }
    if (view->group != group)
      return Error{ErrorCode::invalid_config,
                   reader.value().place() + ": this log is of a group with another configuration than " +
                       "the one given (group " + view->group + ", here " + group + ")"};
    if (view->state.round == 0 || starts.empty())
      starts.push_back({view->from.step, std::exchange(back, std::nullopt)});
  }
}

/// Reads the records of a log once.
class Replayer {
 public:
  Replayer(ReplayLearner learner, AgreedState first, std::vector<ReplayState::Start> starts,
           ReplayBatch batch, ReplayRows rows, const Catalog& catalog, const Config& config)
      : learner_(std::move(learner)),
        state_(std::move(first), std::move(starts),
               {*learner_.device, *learner_.trainer, learner_.config.optimizer}),
        batch_(std::move(batch)),
        rows_(std::move(rows)),
        catalog_(catalog),
        plans_(catalog.sync.controllers),
        topics_(config.source.topics) {
    std::sort(topics_.begin(), topics_.end());
  }
  Found take(const DecisionRecord& record);
  [[nodiscard]] const PlanReplay& plans() const { return plans_; }
  [[nodiscard]] bool began() const { return began_; }
  Status conclude(StateReplayReport& report);
  StateReplayReport& report() { return report_; }

 private:
  Found enter(const ViewRecord& view);
  Found play(const RoundRecord& round);
  Found compare_state(const RoundRecord& round);
  Found carry_out(const RoundRecord& round);
  Found make_step(const RoundRecord& round);
  Found compute_all(const RoundRecord& round);
  Found compute(const RoundRecord& round, std::uint32_t rank);
  Found compute_own(const RoundRecord& round, std::uint32_t rank, const Announced& announced);
  Status compare_private(const RoundRecord& round);

  ReplayLearner learner_;
  ReplayState state_;
  ReplayBatch batch_;
  ReplayRows rows_;
  const Catalog catalog_;
  PlanReplay plans_;
  std::vector<std::string> topics_;
  std::unique_ptr<ReplayGroup> group_;
  bool began_ = false;               ///< the state is that before the log's next round
  bool computed_ = false;            ///< contributions of this round
  sync::policy::RoundPlan entered_;  ///< with which this round was entered
  ReplayModels::Rates rates_;        ///< of local steps: from the last round's entry, and from this one's
  StateReplayReport report_;
};

Found Replayer::take(const DecisionRecord& record) {
  const bool in_middle = plans_.view().has_value();
  auto planned = plans_.take(record);
  if (!planned || planned.value()) return planned;
  if (plans_.unchecked() > 0)
    return Error{ErrorCode::bad_record, "rounds before the first line of a view cannot be done again"};
  if (const auto* view = std::get_if<ViewRecord>(&record)) {
    const bool goes_on = in_middle && view->state.round > 0;  // a new file of the same view
    return goes_on ? nothing_differs() : enter(*view);
  }
  return play(std::get<RoundRecord>(record));
}

Found Replayer::enter(const ViewRecord& view) {
  group_.reset();
  const bool had_begun = began_;
  const auto known = state_.enter_next(view.from.step);
  if (!known) return known.error();
  if (known.value()) {
    began_ = view.state.round == 0;
  } else if (had_begun || state_.step() < view.from.step) {
    return Error{
        ErrorCode::bad_record,
        "view " + std::to_string(view.number) + " begins with the state of step " +
            std::to_string(view.from.step) + ", which the rounds before do not lead to (they end at step " +
            std::to_string(state_.step()) +
            "): give the checkpoint of such a step with --state, or the log of a device that was there"};
  }
  state_.now().stamp.lineage = view.number;
  auto group = ReplayGroup::create(view, {learner_.config.session, catalog_.sync, learner_.trainer->layout(),
                                          *learner_.device, state_.residuals(), state_.now().rows});
  if (!group) return group.error();
  group_ = std::move(group).value();
  if (!began_) return nothing_differs();
  const auto digest = state_.digest();
  if (!digest) return digest.error();
  ++report_.digests_compared;
  if (digest.value().hex() != view.digest) return differs("digest", view.digest, digest.value().hex());
  return nothing_differs();
}

Found Replayer::play(const RoundRecord& round) {
  if (!began_ && round.table.facts.front().step == state_.step()) began_ = true;
  ++report_.rounds;
  if (began_)
    if (auto fits = compare_private(round); !fits) return fits.error();
  rates_ = {rates_.usual, {learner_.config.session.policy, group_->policy_state()}};
  entered_ = group_->plan();
  computed_ = false;
  if (began_ && group_->speculates())
    if (auto found = compute_all(round); !found || found.value()) return found;
  if (auto met = group_->meet(round); !met) return met.error();
  if (began_) {
    if (auto kept = state_.keep_if_needed(); !kept) return kept.error();
    if (auto found = compare_state(round); !found || found.value()) return found;
    return carry_out(round);
  }
  group_->finish(false, state_.now());
  return nothing_differs();
}

/// Compares private parts with the results of the rounds before.
Status Replayer::compare_private(const RoundRecord& round) {
  if (auto fits = group_->compare_residuals(round); !fits || round.round > 0) return fits;
  for (std::size_t rank = 0; rank < round.table.size(); ++rank) {
    const auto& kept = round.table.sections[rank].private_state;
    if (auto entered = state_.models().enter(plans_.view()->members[rank], kept.empty() ? 0 : kept.front(),
                                             state_.now());
        !entered)
      return entered;
  }
  return ok();
}

Found Replayer::compare_state(const RoundRecord& round) {
  const AgreedState& state = state_.now();
  const auto& view = *plans_.view();
  std::optional<Digest> digest;
  for (std::size_t rank = 0; rank < round.table.size(); ++rank) {
    const auto& f = round.table.facts[rank];
    const auto& id = view.members[rank];
    if (f.step != state.stamp.step)
      return differs("step of " + id, std::to_string(f.step), std::to_string(state.stamp.step));
    if (f.agreed_rows != state.rows)
      return differs("agreed_rows of " + id, std::to_string(f.agreed_rows), std::to_string(state.rows));
    if ((f.flags & sync::flag_digest) == 0) continue;
    if (!digest) {
      const auto now = state_.digest();
      if (!now) return now.error();
      digest = now.value();
    }
    ++report_.digests_compared;
    if (f.digest != *digest) return differs("digest of " + id, f.digest.hex(), digest->hex());
  }
  const sync::ViewSpec spec{
      .number = view.number, .token = view.token, .members = view.members, .rank = view.rank};
  auto fits = check_announced(round.table, spec, state, {}, topics_);
  return fits ? nothing_differs() : Found(fits.error());
}

Found Replayer::carry_out(const RoundRecord& round) {
  const auto& plan = group_->plan();
  if (entered_.next.injected_per_row() > 0)
    return Error{
        ErrorCode::bad_record,
        "a round of mode " + std::string(name_of(plan.now.mode)) +
            " in which devices see copies of others' rows, which a replay cannot do again: steps of single "
            "devices are not recorded"};
  if (plan.now.mode == Mode::gradients || plan.now.mode == Mode::delta) return make_step(round);
  const bool dry = (round.table.facts.front().flags & sync::flag_dry_run) != 0;
  if (plan.now.mode == Mode::idle && !dry && only_offsets_move(round.table)) {
    fold_round(state_.now(), round.table, round.view, true);
    ++report_.steps;
  }
  state_.models().undo_departed(state_.now());
  group_->finish(false, state_.now());
  if (plan.now.retreat == sync::policy::Retreat::roll_back)
    state_.leave_for({plan.now.back_lineage, plan.now.back_step}, round.view, group_->policy_state().memory);
  return nothing_differs();
}

Found Replayer::make_step(const RoundRecord& round) {
  if (auto found = compute_all(round); !found || found.value()) return found;
  auto agreed = group_->agree();
  if (!agreed) return agreed.error();
  const std::uint64_t before = state_.now().rows;
  const auto seen = state_.now().model.columns();
  const std::vector<devices::Column> columns_before(seen.begin(), seen.end());
  const auto made = runtime::make_step(state_.now(),
                                       {learner_.config.optimizer, *learner_.device, round.table,
                                        group_->plan().now, group_->policy_state().memory, round.view},
                                       agreed.value());
  if (!made) return made.error();
  if (group_->plan().now.mode == Mode::delta)
    state_.models().agreed(state_.now(), made.value().finite, state_.residuals());
  else
    state_.models().follow_group();
  group_->finish(made.value().finite, state_.now());
  state_.rewrite_residuals(columns_before);
  ++report_.steps;
  report_.rows += state_.now().rows - before;
  return nothing_differs();
}

Found Replayer::compute_all(const RoundRecord& round) {
  for (std::uint32_t rank = 0; rank < round.table.size() && !computed_; ++rank)
    if (auto found = compute(round, rank); !found || found.value()) return found;
  computed_ = true;
  return nothing_differs();
}

/// One device's part: the announced number of its rows must give the announced loss and gradient.
Found Replayer::compute(const RoundRecord& round, std::uint32_t rank) {
  const sync::Facts& f = round.table.facts[rank];
  const std::string of = " of " + plans_.view()->members[rank];
  const Announced announced(round.table, rank);
  if (ReplayModels::local_steps_of(entered_.next, round.table)) return compute_own(round, rank, announced);
  batch_.clear();
  for (const RowInterval& rows : announced.intervals()) {
    if (rows.rows_trained == 0) continue;
    if (auto read = rows_.take(rows, announced.runs(), batch_); !read) return read.error();
  }
  const BatchView batch = batch_.view();
  if (batch.rows != f.rows) return differs("rows" + of, std::to_string(f.rows), std::to_string(batch.rows));
  devices::StepReport report;
  if (batch.rows > 0) {
    auto computed =
        learner_.trainer->compute_gradients(state_.now().model, batch, group_->contribution(rank));
    if (!computed) return computed.error();
    report = computed.value();
  }
  // A non-finite batch is not part of the step, and its rows do not count.
  if ((f.flags & sync::flag_nonfinite) != 0)
    return f.rows == 0 ? nothing_differs() : differs("flags" + of, std::to_string(f.flags), "a finite batch");
  if (text_of_number(report.loss_sum) != text_of_number(f.loss_sum))
    return differs("loss_sum" + of, text_of_number(f.loss_sum), text_of_number(report.loss_sum));
  if (report.correct != f.correct)
    return differs("correct" + of, std::to_string(f.correct), std::to_string(report.correct));
  if (text_of_number(report.gradient_norm2) != text_of_number(f.gradient_norm2))
    return differs("gradient_norm2" + of, text_of_number(f.gradient_norm2),
                   text_of_number(report.gradient_norm2));
  return nothing_differs();
}

/// Its local steps since the last synchronization, and their results.
Found Replayer::compute_own(const RoundRecord& round, std::uint32_t rank, const Announced& announced) {
  const sync::Facts& f = round.table.facts[rank];
  const std::string& id = plans_.view()->members[rank];
  auto stepped =
      state_.models().step(id, announced, round.table.sections[rank], rates_, state_.now(), rows_, batch_);
  if (!stepped) return stepped.error();
  LocalModel& model = *stepped.value();
  const LocalSteps& own = model.own();
  if (own.rows() != f.rows)
    return differs("rows of " + id, std::to_string(f.rows), std::to_string(own.rows()));
  if (text_of_number(own.loss_sum()) != text_of_number(f.loss_sum))
    return differs("loss_sum of " + id, text_of_number(f.loss_sum), text_of_number(own.loss_sum()));
  if (own.correct() != f.correct)
    return differs("correct of " + id, std::to_string(f.correct), std::to_string(own.correct()));
  if (auto prepared = model.prepare_delta(state_.now()); !prepared) return prepared.error();
  std::ranges::copy(model.contribution().host_bytes(), group_->contribution(rank).host_bytes().begin());
  if (entered_.next.overlaps() && own.rows() > 0) state_.models().depart(id);
  return nothing_differs();
}

Status Replayer::conclude(StateReplayReport& report) {
  const auto digest = state_.digest();
  if (!digest) return digest.error();
  report_.views = plans_.views();
  report_.stamp = state_.now().stamp;
  report_.digest = digest.value();
  report = report_;
  return ok();
}

Status play_all(DecisionReader& reader, Replayer& replayer,
                const std::function<void(const StateReplayReport&)>& progress, const StopRequest& stop) {
  while (true) {
    auto record = reader.next();
    if (!record) return record.error();
    if (!record.value()) break;
    if (stop.load() > 0) return Error{ErrorCode::cancelled, "interrupted"};
    auto found = replayer.take(*record.value());
    if (!found) return Error{found.error().code, reader.place() + ": " + found.error().message};
    progress(replayer.report());
    if (!found.value()) continue;
    const auto* round = std::get_if<RoundRecord>(&*record.value());
    replayer.report().difference = {reader.place(), replayer.plans().view()->number,
                                    round != nullptr ? round->round : replayer.plans().view()->state.round,
                                    *found.value()};
    break;
  }
  for (const auto& sentence : reader.missing()) replayer.report().notes.push_back(sentence);
  if (!reader.torn().empty())
    replayer.report().notes.push_back(reader.torn() + " is incomplete and was skipped");
  if (!replayer.report().difference && !replayer.began())
    return Error{ErrorCode::bad_record,
                 "no round of this log starts from the state that the replay begins with"};
  if (!replayer.report().difference && replayer.report().rounds == 0)
    return Error{ErrorCode::bad_record, "this log has no round: nothing to check"};
  return ok();
}

}  // namespace

Result<StateReplayReport> replay_state(const LoadedConfig& loaded, const Catalog& catalog,
                                       const StateReplayOptions& options, const OpenReplayStream& open,
                                       const std::function<void(const StateReplayReport&)>& progress,
                                       const StopRequest& stop) {
  const Config& config = loaded.config;
  auto starts = starts_in(options.log, group_hash(group_keys(loaded)));
  if (!starts) return starts.error();
  auto learner = make_replay_learner(config, catalog, stop);
  if (!learner) return learner.error();
  auto first = state_at_begin(config, options.state, learner.value());
  if (!first) return first.error();
  const auto& session = learner.value().config.session;
  auto batch = ReplayBatch::create(session.row_shape, session.rows_max, *learner.value().device);
  if (!batch) return batch.error();
  auto reader = DecisionReader::open(options.log);
  if (!reader) return reader.error();
  Replayer replayer(std::move(learner).value(), std::move(first).value(), std::move(starts).value(),
                    std::move(batch).value(), ReplayRows(config, catalog, open), catalog, config);
  if (auto played = play_all(reader.value(), replayer, progress, stop); !played) return played.error();
  StateReplayReport report;
  if (auto concluded = replayer.conclude(report); !concluded) return concluded.error();
  return report;
}

}  // namespace rivulet::runtime
