#include "sync/round/session.h"

#include <map>

#include "sync/collective/gathering.h"
#include "sync/round/facts_exchange.h"
#include "sync/round/foresight.h"
#include "sync/round/moves.h"

namespace rivulet::sync {
namespace {

constexpr std::size_t bye_bytes = 8;

template <class Entry>
const Entry* find_entry(std::span<const Entry* const> entries, std::string_view name) {
  for (const Entry* e : entries)
    if (e->name == name) return e;
  return nullptr;
}

}  // namespace

SyncCatalog builtin_sync_catalog() {
  return {policy::builtin_policies(), builtin_codecs(), builtin_aggregations()};
}

/// The stages of a round. Each waits for a set of tickets or for an Aggregation; none of them blocks.
enum class Stage : std::uint8_t { resting, moves, facts, wasted, planned, payload, agreed, goodbye, failed };

struct SyncSession::State {
  State(Transport& t, const ViewSpec& v, const SessionConfig& c, const SyncCatalog& k, CodecShelf& shelf,
        GradientView result)
      : transport(t),
        view(v),
        config(c),
        catalog(k),
        codecs(shelf),
        scratch(result),
        moves(t, v, c.row_shape, c.rows_max),
        foresight(may_foresee(), scratch.bytes()) {}
  ~State() { let_go(false); }

  // constant
  Transport& transport;
  const ViewSpec view;
  const SessionConfig config;
  const SyncCatalog catalog;
  CodecShelf& codecs;
  const policy::PolicyEntry* law = nullptr;
  const GradientView scratch;

  // train thread
  Stage stage = Stage::resting;
  std::shared_ptr<const Round> round;  ///< after the facts this one, before them the last
  std::unique_ptr<FactsExchange> facts;
  MovesExchange moves;
  Foresight foresight;
  std::unique_ptr<EarlyAggregation> early;  ///< null: none so far
  bool has_bet = false;                     ///< in this round
  EarlyFate early_fate = EarlyFate::none;
  std::vector<Ticket> pending;  ///< of the goodbye
  std::map<std::string, std::unique_ptr<Aggregation>, std::less<>> aggregations;
  Aggregation* aggregation = nullptr;
  Codec* codec = nullptr;  ///< has a candidate
  GradientView agreed;
  std::vector<std::vector<std::byte>> byes;
  Error error;
  std::vector<std::uint32_t> suspects;

  [[nodiscard]] bool alone() const { return transport.world() == 1; }
  [[nodiscard]] std::uint32_t me() const { return transport.rank(); }

  template <class F>
  void for_each_peer(F f) {
    for (std::uint32_t k = 1; k < transport.world(); ++k) f((me() + k) % transport.world());
  }

  Progress fail(Error e) {
    stage = Stage::failed;
    error = std::move(e);
    let_go(false);
    return Progress::failed;
  }
  void let_go(bool applied) {
    if (codec != nullptr) applied ? codec->commit() : codec->drop();
    codec = nullptr;
  }
  Progress fail_transport() {
    if (transport.lost_rank() >= 0) suspects = {static_cast<std::uint32_t>(transport.lost_rank())};
    return fail(transport.error());
  }

  /// done when every ticket of the stage is.
  Progress poll_pending() {
    Progress all = Progress::done;
    for (const Ticket t : pending) {
      const Progress p = transport.poll(t);
      if (p == Progress::failed) return Progress::failed;
      if (p == Progress::pending) all = Progress::pending;
    }
    return all;
  }

  [[nodiscard]] bool may_foresee() const;
  [[nodiscard]] Exchange exchange(const GradientView& mine, const CodecShelf::Item& coding) const;
  Status send_early(const GradientView& mine, bool has_rows);
  Progress see_bet();
  Progress advance_wasted();
  [[nodiscard]] std::unique_ptr<Aggregation> make(const AggregationEntry& how) const;
  void say_goodbye();
  Progress advance_facts();
  Progress advance();
  Progress advance_agreement();
};

bool SyncSession::State::may_foresee() const {
  const auto* how = find_entry(catalog.aggregations, policy::name_of(policy::Reduction::gather));
  const auto* coding = find_entry(catalog.codecs, Foresight::codec);
  if (!config.foresee || alone() || how == nullptr || how->make_early == nullptr || coding == nullptr)
    return false;
  const Codec& dense = *codecs.find(Foresight::codec).codec;
  return dense.weighs_late() && dense.has_fixed_size() && dense.accepts(scratch.memory);
}

/// Of the round whose plan is the newest known.
Exchange SyncSession::State::exchange(const GradientView& mine, const CodecShelf::Item& coding) const {
  return {.view = view.token,
          .plan = &round->plan(),
          .mine = mine,
          .agreed = scratch,
          .codec = coding.codec,
          .codec_entry = coding.entry,
          .contributors = round->totals.contributors};
}

/// The contribution leaves behind the facts. A bet needs no candidate of a codec: the one it is for keeps
/// nothing.
Status SyncSession::State::send_early(const GradientView& mine, bool has_rows) {
  if (!early)
    early = find_entry(catalog.aggregations, policy::name_of(policy::Reduction::gather))
                ->make_early(transport.gathering() != nullptr);
  Exchange sent = exchange(mine, codecs.find(Foresight::codec));
  sent.round = round->state.round;
  sent.plan = nullptr;
  has_bet = true;
  return early->send(transport, sent, has_rows);
}

/// The plan is known: what was sent is what it asks for, or it is received and forgotten.
Progress SyncSession::State::see_bet() {
  const bool foreseen = foresight.see(*round);
  if (!has_bet || foreseen) {
    early_fate = has_bet ? EarlyFate::used : EarlyFate::none;
    stage = Stage::planned;
    return Progress::done;
  }
  early_fate = round->totals.rows > 0 ? EarlyFate::wasted : EarlyFate::none;
  std::vector<std::uint32_t> rows;
  for (const Facts& f : round->table.facts) rows.push_back(f.rows);
  early->give_up(rows);
  stage = Stage::wasted;
  return advance_wasted();
}

Progress SyncSession::State::advance_wasted() {
  const Progress p = early->poll();
  if (p == Progress::failed) return transport.lost_rank() >= 0 ? fail_transport() : fail(early->error());
  if (p == Progress::done) stage = Stage::planned;
  return p;
}

std::unique_ptr<Aggregation> SyncSession::State::make(const AggregationEntry& how) const {
  const bool gathers = transport.gathering() != nullptr && how.make_gathered != nullptr;
  return gathers ? how.make_gathered() : how.make();
}

void SyncSession::State::say_goodbye() {
  pending.clear();
  if (Gathering* all = transport.gathering(); all != nullptr) {
    pending.push_back(all->tell(
        {.lane = Lane::bye, .bytes = std::vector<std::byte>(bye_bytes), .tellers = transport.world()}));
    return;
  }
  byes.assign(transport.world(), std::vector<std::byte>(bye_bytes));
  for_each_peer([&](std::uint32_t peer) {
    pending.push_back(transport.receive(peer, Lane::bye, byes[peer]));
    pending.push_back(transport.send(peer, Lane::bye, byes[me()]));
  });
}

Progress SyncSession::State::advance_facts() {
  const Progress p = facts->poll();
  if (p == Progress::failed) return fail_transport();
  if (p == Progress::pending) return p;
  auto next = facts->finish(round);
  if (!next) return fail(next.error());
  round = std::move(next).value();
  return see_bet();
}

Progress SyncSession::State::advance_agreement() {
  const Progress p = aggregation->poll();
  if (p == Progress::failed) {
    if (transport.lost_rank() >= 0) return fail_transport();
    return fail(aggregation->error());
  }
  if (p == Progress::done) {
    agreed = aggregation->elsewhere().value_or(scratch);
    stage = Stage::agreed;
  }
  return p;
}

Progress SyncSession::State::advance() {
  if (stage == Stage::moves) {
    const Progress p = moves.poll();
    if (p == Progress::failed) return transport.lost_rank() >= 0 ? fail_transport() : fail(moves.error());
    if (p == Progress::done) stage = Stage::resting;
    return p;
  }
  if (stage == Stage::payload) return advance_agreement();
  if (stage == Stage::facts) return advance_facts();
  if (stage == Stage::wasted) return advance_wasted();
  const Progress p = poll_pending();
  if (p == Progress::failed) return fail_transport();
  if (p == Progress::done) stage = Stage::resting;
  return p;
}

SyncSession::SyncSession(Transport& transport, const ViewSpec& view, const SessionConfig& config,
                         const SyncCatalog& catalog, CodecShelf& codecs, GradientView agreed_scratch)
    : state_(std::make_unique<State>(transport, view, config, catalog, codecs, agreed_scratch)) {
  State& s = *state_;
  s.law = find_entry(catalog.policies, config.policy.batch_policy);
  RIVULET_CHECK(s.law != nullptr, "batch.policy was validated against the catalog");
  const FactsExchange::Parts parts{transport, s.view, s.config.policy, *s.law};
  s.facts = transport.gathering() != nullptr ? make_gathered_facts(parts) : make_message_facts(parts);
  s.round = s.facts->first();
}

SyncSession::~SyncSession() = default;

void SyncSession::begin_moves(const BatchView& outgoing) {
  State& s = *state_;
  RIVULET_CHECK(s.stage == Stage::resting, "begin_moves inside a round");
  s.moves.begin(s.round->state.round, s.round->plan().next_moves, outgoing);
  s.stage = Stage::moves;
}

std::span<const GuestRow> SyncSession::guests() const {
  return state_->moves.guests();
}

bool SyncSession::bets() const {
  return state_->foresight.bets();
}

EarlyFate SyncSession::early() const {
  return state_->early_fate;
}

void SyncSession::begin_facts(Facts facts, const FactsSection& section, const GradientView& mine) {
  State& s = *state_;
  RIVULET_CHECK(s.stage == Stage::resting, "begin_facts inside a round");
  auto encoded = encode_section(section);
  if (!encoded) {
    s.fail(encoded.error());
    return;
  }
  facts.view = s.view.token;
  facts.round = s.round->state.round;
  facts.rank = s.me();
  facts.plan_hash = s.round->plan_hash;
  facts.section_bytes = static_cast<std::uint32_t>(encoded.value().size());
  s.facts->begin(encode_head(facts), std::move(encoded).value());
  s.stage = Stage::facts;
  s.has_bet = false;
  s.early_fate = EarlyFate::none;
  if (!s.foresight.bets()) return;
  if (auto sent = s.send_early(mine, facts.rows > 0); !sent) s.fail(sent.error());
}

bool SyncSession::peer_entered() {
  return state_->facts->peer_entered();
}

void SyncSession::begin_payload(const GradientView& mine) {
  State& s = *state_;
  RIVULET_CHECK(s.stage == Stage::planned, "begin_payload before the plan");
  const policy::RoundPlan& plan = s.round->plan();
  const std::string name =
      plan.aggregation.empty() ? std::string(policy::name_of(plan.reduction)) : plan.aggregation;
  const auto* how = find_entry(s.catalog.aggregations, name);
  RIVULET_CHECK(how != nullptr, "the plan names an aggregation that is not in the catalog");
  const auto coding = s.codecs.find(plan.codec);
  s.aggregation = s.early.get();
  if (s.early_fate != EarlyFate::used) {
    auto& aggregation = s.aggregations[name];
    if (!aggregation) aggregation = s.make(*how);
    s.aggregation = aggregation.get();
  }
  s.codec = coding.codec;
  RIVULET_CHECK(s.codec->accepts(mine.memory), "the codec cannot read this memory");
  Exchange exchange = s.exchange(mine, coding);
  exchange.round = s.round->state.round - 1;
  if (auto begun = s.aggregation->begin(s.transport, exchange); !begun) {
    s.fail(begun.error());
    return;
  }
  s.stage = Stage::payload;
}

const GradientView& SyncSession::agreed() const {
  RIVULET_CHECK(state_->stage == Stage::agreed, "agreed() before the exchange finished");
  return state_->agreed;
}

Progress SyncSession::poll() {
  switch (state_->stage) {
    case Stage::failed: return Progress::failed;
    case Stage::resting:
    case Stage::planned:
    case Stage::agreed: return state_->transport.healthy() ? Progress::done : state_->fail_transport();
    default: return state_->advance();
  }
}

bool SyncSession::wait() {
  State& s = *state_;
  if (s.stage == Stage::payload) return s.aggregation->wait();
  if (s.stage == Stage::wasted) return s.early->wait();
  return s.stage == Stage::facts && s.facts->wait();
}

const std::shared_ptr<const Round>& SyncSession::last_round() const {
  return state_->round;
}
void SyncSession::go_on_from(const policy::PolicyState& state) {
  State& s = *state_;
  RIVULET_CHECK(s.stage == Stage::resting && s.round->state.round == 0, "go_on_from() after a round");
  s.round = std::make_shared<const Round>(s.round->table, state, s.round->work.check());
}

void SyncSession::finish(bool applied) {
  State& s = *state_;
  RIVULET_CHECK(s.stage == Stage::planned || s.stage == Stage::agreed, "finish() inside an exchange");
  s.let_go(applied);
  s.aggregation = nullptr;
  s.moves.clear();
  s.stage = Stage::resting;
}

const Error& SyncSession::error() const {
  return state_->error;
}
std::span<const std::uint32_t> SyncSession::suspects() const {
  return state_->suspects;
}

void SyncSession::begin_goodbye() {
  State& s = *state_;
  RIVULET_CHECK(s.stage == Stage::resting, "goodbye inside a round");
  s.say_goodbye();
  s.stage = Stage::goodbye;
}

}  // namespace rivulet::sync
