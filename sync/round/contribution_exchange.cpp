#include "sync/round/contribution_exchange.h"

#include <algorithm>

#include "core/check.h"

namespace rivulet::sync {
namespace {

template <class Entry>
const Entry& entry_named(std::span<const Entry* const> entries, std::string_view name) {
  for (const Entry* e : entries)
    if (e->name == name) return *e;
  RIVULET_CHECK(false, "the schedule's entry is not in the catalog");
}

}  // namespace

double guess_weight(const policy::Schedule& schedule, std::uint32_t rank, std::uint32_t rows) {
  if (rows == 0) return 0;
  double steps = 1;
  if (schedule.local) {  // the other devices' steps are predicted from the steps of this one
    const std::uint32_t each = schedule.rows[rank];
    steps = each > 0 ? static_cast<double>(rows) / each : schedule.local->steps;
  }
  double all = rows;
  for (std::uint32_t other = 0; other < schedule.rows.size(); ++other)
    if (other != rank) all += steps * schedule.rows[other];
  return rows / all;
}

ContributionExchange::ContributionExchange(const Parts& parts)
    : parts_(parts), speculation_(parts.speculate && parts.transport.world() > 1) {}

const CompressorEntry& ContributionExchange::compressor_of(const policy::Schedule& schedule) const {
  return entry_named(parts_.compressors, schedule.way.compressor);
}

bool ContributionExchange::speculates(const policy::Schedule& schedule) const {
  if (schedule.gated || !speculation_.speculates(schedule)) return false;
  if (!entry_named(parts_.aggregations, schedule.way.collective).may_leave_early) return false;
  // While resting, no rows are expected, and every slot would be wasted.
  if (compressor_of(schedule).keeps_residual) return !schedule.rest;
  // Devices with local steps enter at different times: waiting for payloads after the facts would treat some
  // as late.
  if (schedule.local) return false;
  return early_ == nullptr ||
         (early_bytes_ == schedule.way.payload_bytes && early_collective_ == schedule.way.collective);
}

std::size_t ContributionExchange::expects(const policy::Schedule& next) const {
  return speculates(next) && compressor_of(next).keeps_residual ? next.way.payload_bytes : 0;
}

/// Returns the parameters of this round's exchange, without weights.
Exchange ContributionExchange::exchange(const GradientView& mine) const {
  const std::uint64_t buffers = parts_.shape.buffer_bytes();
  RIVULET_CHECK(schedule_.way.payload_bytes > buffers, "the schedule has an empty slot");
  return {.view = parts_.view,
          .round = round_,
          .mine = mine,
          .agreed = parts_.scratch,
          .compressor = &compressor_of(schedule_),
          .coding = {&parts_.shape, schedule_.way.keep_ratio, draw_, &parts_.settings},
          .slot_bytes = schedule_.way.payload_bytes - buffers};
}

/// Only for compressors that send single elements: with others, it would clear all momentum.
bool ContributionExchange::masks_momentum() const {
  return schedule_.masks_momentum() && compressor_of(schedule_).entries;
}

/// Encodes with a predicted weight. The residual absorbs the prediction error.
std::span<const std::byte> ContributionExchange::enter(const policy::Schedule& schedule, const Facts& facts,
                                                       const GradientView& mine) {
  schedule_ = schedule;
  round_ = facts.round;
  draw_ = facts.step;
  rows_ = facts.rows;
  sent_ = Sent::nothing;
  outcome_ = SpeculationOutcome::none;
  if (!speculates(schedule)) return {};
  if (!compressor_of(schedule).keeps_residual) {
    sent_ = Sent::behind_facts;
    return {};
  }
  sent_ = Sent::with_facts;
  parts_.residual.become(schedule_.local.has_value());
  const double guess = guess_weight(schedule_, parts_.transport.rank(), facts.rows);
  Exchange sending = exchange(parts_.residual.stage(mine, guess, masks_momentum()));
  parts_.residual.guess(guess, facts.rows);
  sending.residual = &parts_.residual;
  payload_.resize(sending.payload_bytes());
  encode_contribution(sending, payload_);
  return payload_;
}

/// The receivers apply the weights.
Status ContributionExchange::send_behind_facts(const GradientView& mine) {
  if (sent_ != Sent::behind_facts) return ok();
  if (!early_)
    early_ = make_speculative(entry_named(parts_.aggregations, schedule_.way.collective), parts_.transport);
  early_collective_ = schedule_.way.collective;
  early_bytes_ = schedule_.way.payload_bytes;
  return early_->send(parts_.transport, exchange(mine), rows_ > 0);
}

/// Whether devices send their residuals in this round, because its compressor keeps none.
bool ContributionExchange::flushes(const Round& round) const {
  if (compressor_of(schedule_).keeps_residual) return false;
  return any_flag(round.table, flag_residual);
}

Progress ContributionExchange::see(const Round& round) {
  if (const auto& way = round.plan().now.way) schedule_.way = *way;
  const bool as_expected = speculation_.see(round, schedule_, flushes(round));
  if (sent_ == Sent::nothing) return Progress::done;
  if (as_expected) {
    outcome_ = SpeculationOutcome::used;
    return Progress::done;
  }
  outcome_ = round.totals.rows > 0 ? SpeculationOutcome::wasted : SpeculationOutcome::none;
  if (sent_ == Sent::with_facts) {
    parts_.residual.drop();
    return Progress::done;
  }
  std::vector<std::uint32_t> rows;
  rows.reserve(round.table.size());
  for (const Facts& f : round.table.facts) rows.push_back(f.rows);
  early_->give_up(rows);
  running_ = early_.get();
  return poll();
}

/// The scheduled collective, created at first use.
Aggregation& ContributionExchange::collective() {
  auto& made = aggregations_[schedule_.way.collective];
  if (!made)
    made = make_aggregation(entry_named(parts_.aggregations, schedule_.way.collective), parts_.transport);
  return *made;
}

Progress ContributionExchange::begin(const Round& round, FactsExchange& facts, const GradientView& mine) {
  Exchange exchange = this->exchange(mine);
  exchange.weights = round.plan().now.weights;
  exchange.contributors = round.totals.contributors;
  const bool used = outcome_ == SpeculationOutcome::used;
  if (used && sent_ == Sent::with_facts) return add_up(facts, exchange);
  if (exchange.compressor->keeps_residual || flushes(round)) {
    // Deltas after local steps, gradients otherwise.
    parts_.residual.become(round.plan().now.mode == policy::Mode::delta);
    exchange.mine = parts_.residual.stage(mine, exchange.weights[parts_.transport.rank()], masks_momentum());
    exchange.residual = &parts_.residual;
  }
  running_ = used ? early_.get() : &collective();
  auto begun = running_->begin(parts_.transport, exchange);
  return begun ? Progress::pending : fail(begun.error());
}

Progress ContributionExchange::add_up(FactsExchange& facts, Exchange& exchange) {
  parts_.residual.reweigh(exchange.mine, exchange.weights[parts_.transport.rank()]);
  exchange.residual = &parts_.residual;
  auto sum = facts.add_up(exchange);
  if (!sum) return fail(sum.error());
  agreed_ = sum.value();
  return Progress::done;
}

Progress ContributionExchange::poll() {
  const Progress p = running_->poll();
  if (p == Progress::failed) return fail(running_->error());
  if (p == Progress::done) agreed_ = running_->elsewhere().value_or(parts_.scratch);
  return p;
}

void ContributionExchange::finish(bool applied) {
  if (applied)
    parts_.residual.commit();
  else
    parts_.residual.drop();
  running_ = nullptr;
}

Progress ContributionExchange::fail(Error error) {
  error_ = std::move(error);
  return Progress::failed;
}

}  // namespace rivulet::sync
