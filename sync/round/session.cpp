#include "sync/round/session.h"

#include <map>

#include "sync/collective/gathering.h"
#include "sync/round/facts_exchange.h"
#include "sync/round/moves.h"
#include "sync/round/speculation.h"

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
  return {policy::builtin_controllers(), builtin_compressors(), builtin_aggregations()};
}

/// The stages of a round. Each waits for a set of tickets or for an Aggregation; none of them blocks.
enum class Stage : std::uint8_t { resting, moves, facts, wasted, planned, payload, agreed, goodbye, failed };

struct SyncSession::State {
  State(Transport& t, const ViewSpec& v, const SessionConfig& c, const SyncCatalog& k, CompressorCache& shelf,
        GradientView result)
      : transport(t),
        view(v),
        config(c),
        catalog(k),
        compressors(shelf),
        scratch(result),
        moves(t, v, c.row_shape, c.rows_max),
        speculation(may_speculate(), scratch.bytes()) {}
  ~State() { let_go(false); }

  // constant
  Transport& transport;
  const ViewSpec view;
  const SessionConfig config;
  const SyncCatalog catalog;
  CompressorCache& compressors;
  policy::Controllers controllers;
  const GradientView scratch;

  // train thread
  Stage stage = Stage::resting;
  std::shared_ptr<const Round> round;  ///< after the facts this one, before them the last
  policy::Schedule schedule;           ///< of the round whose facts have left
  std::unique_ptr<FactsExchange> facts;
  MovesExchange moves;
  Speculation speculation;
  std::unique_ptr<SpeculativeAggregation> early;  ///< null: none so far
  bool has_speculated = false;                    ///< in this round
  SpeculationOutcome outcome = SpeculationOutcome::none;
  std::vector<Ticket> pending;  ///< of the goodbye
  std::map<std::string, std::unique_ptr<Aggregation>, std::less<>> aggregations;
  Aggregation* aggregation = nullptr;
  Compressor* compressor = nullptr;  ///< has a candidate
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
    if (compressor != nullptr) applied ? compressor->commit() : compressor->drop();
    compressor = nullptr;
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

  [[nodiscard]] bool may_speculate() const;
  [[nodiscard]] Exchange exchange(const GradientView& mine, const CompressorCache::Item& coding) const;
  Status send_early(const GradientView& mine, bool has_rows);
  Progress see_bet();
  Progress advance_wasted();
  [[nodiscard]] std::unique_ptr<Aggregation> make(const AggregationEntry& how) const;
  void say_goodbye();
  Progress advance_facts();
  Progress advance();
  Progress advance_agreement();
};

bool SyncSession::State::may_speculate() const {
  const auto* how = find_entry(catalog.aggregations, Speculation::collective);
  const auto* coding = find_entry(catalog.compressors, Speculation::compressor);
  if (!config.speculate || alone() || how == nullptr || how->make_speculative == nullptr || coding == nullptr)
    return false;
  const Compressor& dense = *compressors.find(Speculation::compressor).compressor;
  return dense.receiver_weighted() && dense.has_fixed_size() && dense.accepts(scratch.memory);
}

/// Of the round that was entered; without weights.
Exchange SyncSession::State::exchange(const GradientView& mine, const CompressorCache::Item& coding) const {
  return {.view = view.token,
          .mine = mine,
          .agreed = scratch,
          .compressor = coding.compressor,
          .compressor_entry = coding.entry,
          .keep_ratio = schedule.keep_ratio,
          .slot_bytes = schedule.slot_bytes};
}

/// The contribution leaves behind the facts. A bet needs no candidate of a compressor: the one it is for
/// keeps nothing.
Status SyncSession::State::send_early(const GradientView& mine, bool has_rows) {
  if (!early)
    early = find_entry(catalog.aggregations, Speculation::collective)
                ->make_speculative(transport.gathering() != nullptr);
  Exchange sent = exchange(mine, compressors.find(Speculation::compressor));
  sent.round = round->state.round;
  has_speculated = true;
  return early->send(transport, sent, has_rows);
}

/// The plan is known: what was sent is what it asks for, or it is received and forgotten.
Progress SyncSession::State::see_bet() {
  const bool as_expected = speculation.see(*round);
  if (!has_speculated || as_expected) {
    outcome = has_speculated ? SpeculationOutcome::used : SpeculationOutcome::none;
    stage = Stage::planned;
    return Progress::done;
  }
  outcome = round->totals.rows > 0 ? SpeculationOutcome::wasted : SpeculationOutcome::none;
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
        {.lane = Lane::shutdown, .bytes = std::vector<std::byte>(bye_bytes), .tellers = transport.world()}));
    return;
  }
  byes.assign(transport.world(), std::vector<std::byte>(bye_bytes));
  for_each_peer([&](std::uint32_t peer) {
    pending.push_back(transport.receive(peer, Lane::shutdown, byes[peer]));
    pending.push_back(transport.send(peer, Lane::shutdown, byes[me()]));
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
                         const SyncCatalog& catalog, CompressorCache& compressors,
                         GradientView agreed_scratch, std::vector<policy::ControllerMemory> memory)
    : state_(std::make_unique<State>(transport, view, config, catalog, compressors, agreed_scratch)) {
  State& s = *state_;
  auto controllers = policy::controllers_of(config.policy, catalog.controllers);
  RIVULET_CHECK(controllers, "the controllers' names were validated against the catalog");
  s.controllers = std::move(controllers).value();
  const FactsExchange::Parts parts{
      transport, s.view, s.config.policy, s.controllers,
      facts_head_bytes + sizeof(double) * policy::measurements_of(s.controllers)};
  s.facts = transport.gathering() != nullptr ? make_gathered_facts(parts) : make_message_facts(parts);
  s.round = s.facts->first(std::move(memory));
}

SyncSession::~SyncSession() = default;

void SyncSession::begin_moves(const BatchView& outgoing) {
  State& s = *state_;
  RIVULET_CHECK(s.stage == Stage::resting, "begin_moves inside a round");
  s.moves.begin(s.round->state.round, s.round->plan().next.moves, outgoing);
  s.stage = Stage::moves;
}

std::span<const ReceivedRow> SyncSession::received_rows() const {
  return state_->moves.received_rows();
}

bool SyncSession::speculates() const {
  return state_->speculation.speculates(state_->round->plan().next);
}

SpeculationOutcome SyncSession::early() const {
  return state_->outcome;
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
  s.schedule = s.round->plan().next;
  s.has_speculated = false;
  s.outcome = SpeculationOutcome::none;
  if (!s.speculation.speculates(s.schedule)) return;
  if (auto sent = s.send_early(mine, facts.rows > 0); !sent) s.fail(sent.error());
}

bool SyncSession::peer_entered() {
  return state_->facts->peer_entered();
}

void SyncSession::begin_payload(const GradientView& mine) {
  State& s = *state_;
  RIVULET_CHECK(s.stage == Stage::planned, "begin_payload before the plan");
  const std::string& name = s.schedule.collective;
  const auto* how = find_entry(s.catalog.aggregations, name);
  RIVULET_CHECK(how != nullptr, "the schedule names a collective that is not in the catalog");
  const auto coding = s.compressors.find(s.schedule.compressor);
  s.aggregation = s.early.get();
  if (s.outcome != SpeculationOutcome::used) {
    auto& aggregation = s.aggregations[name];
    if (!aggregation) aggregation = s.make(*how);
    s.aggregation = aggregation.get();
  }
  s.compressor = coding.compressor;
  RIVULET_CHECK(s.compressor->accepts(mine.memory), "the compressor cannot read this memory");
  Exchange exchange = s.exchange(mine, coding);
  exchange.round = s.round->state.round - 1;
  exchange.weights = s.round->plan().now.weights;
  exchange.contributors = s.round->totals.contributors;
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
void SyncSession::resume_from(const policy::PolicyState& state) {
  State& s = *state_;
  RIVULET_CHECK(s.stage == Stage::resting && s.round->state.round == 0, "resume_from() after a round");
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

void SyncSession::begin_shutdown_barrier() {
  State& s = *state_;
  RIVULET_CHECK(s.stage == Stage::resting, "goodbye inside a round");
  s.say_goodbye();
  s.stage = Stage::goodbye;
}

}  // namespace rivulet::sync
