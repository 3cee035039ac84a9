#include "sync/round/session.h"

#include "sync/round/contribution_exchange.h"
#include "sync/round/facts_exchange.h"
#include "sync/transport/barrier.h"

namespace rivulet::sync {
namespace {

constexpr std::size_t bye_bytes = 8;
constexpr std::uint16_t injected_wire_id = 0xfffd;  // in the header's compressor field

}  // namespace

SyncCatalog builtin_sync_catalog() {
  return {policy::builtin_controllers(), builtin_compressors(), builtin_aggregations()};
}

/// Stages of a round. Each waits for tickets or for an Aggregation; none blocks.
enum class Stage : std::uint8_t { resting, facts, wasted, planned, payload, agreed, goodbye, failed };

struct SyncSession::State {
  State(Transport& t, const ViewSpec& v, const SessionConfig& c, const SyncCatalog& k, Residual& kept,
        GradientView scratch)
      : transport(t),
        view(v),
        config(c),
        residual(kept),
        injected(t, view, {Lane::rows, Lane::rows, injected_wire_id, "injected rows"}),
        contributions({t, v.token, config.shape, config.settings, k.compressors, k.aggregations, kept,
                       scratch, c.speculate}) {}

  // constant
  Transport& transport;
  const ViewSpec view;
  const SessionConfig config;
  Residual& residual;
  policy::Controllers controllers;

  // train thread
  Stage stage = Stage::resting;
  std::shared_ptr<const Round> round;  ///< this round after the facts, otherwise the last one
  std::unique_ptr<FactsExchange> facts;
  ParcelExchange injected;
  std::vector<std::vector<std::byte>> outgoing_rows;  ///< by rank
  ContributionExchange contributions;
  std::optional<Barrier> goodbye;
  Error error;

  [[nodiscard]] std::uint32_t me() const { return transport.rank(); }

  template <class F>
  void for_each_peer(F f) {
    for (std::uint32_t k = 1; k < transport.world(); ++k) f((me() + k) % transport.world());
  }

  Progress fail(Error e) {
    stage = Stage::failed;
    error = std::move(e);
    return Progress::failed;
  }
  Progress fail_transport() { return fail(error_of(transport)); }

  void begin_injected();
  Progress advance_facts();
  Progress advance_contributions(Stage then);
  Progress advance();
};

/// The plan determines who sends rows.
void SyncSession::State::begin_injected() {
  const policy::Schedule& schedule = round->plan().next;
  std::vector<ParcelExchange::Outgoing> out;
  std::vector<ParcelExchange::Incoming> in;
  const auto sends = [&](std::uint32_t rank) { return schedule.injected_by(rank) > 0; };
  outgoing_rows.resize(transport.world());
  for_each_peer([&](std::uint32_t peer) {
    if (sends(me())) out.push_back({peer, std::move(outgoing_rows[peer])});
    if (sends(peer)) in.push_back({peer, injected_bytes_max(config.row_shape)});
  });
  outgoing_rows.clear();
  injected.begin(round->state.round, std::move(out), in, Peers::have_time);
}

Progress SyncSession::State::advance_facts() {
  const Progress p = facts->poll();
  if (p == Progress::failed) return fail_transport();
  if (p == Progress::pending) return p;
  injected.peers_are_due();  // a device sends its rows before its facts
  const Progress copied = injected.poll();
  if (copied == Progress::failed)
    return transport.lost_rank() >= 0 ? fail_transport() : fail(injected.error());
  if (copied == Progress::pending) return copied;
  auto next = facts->finish(round);
  if (!next) return fail(next.error());
  round = std::move(next).value();
  const Progress seen = contributions.see(*round);
  const policy::Schedule& schedule = round->plan().next;
  facts->expect(section_room(schedule), contributions.expects(schedule));
  stage = seen == Progress::done ? Stage::planned : Stage::wasted;
  return seen == Progress::failed ? advance_contributions(Stage::planned) : seen;
}

Progress SyncSession::State::advance_contributions(Stage then) {
  const Progress p = contributions.poll();
  if (p == Progress::failed)
    return transport.lost_rank() >= 0 ? fail_transport() : fail(contributions.error());
  if (p == Progress::done) stage = then;
  return p;
}

Progress SyncSession::State::advance() {
  if (stage == Stage::payload) return advance_contributions(Stage::agreed);
  if (stage == Stage::facts) return advance_facts();
  if (stage == Stage::wasted) return advance_contributions(Stage::planned);
  const Progress p = goodbye->poll();
  if (p == Progress::failed) return fail_transport();
  if (p == Progress::done) stage = Stage::resting;
  return p;
}

SyncSession::SyncSession(Transport& transport, const ViewSpec& view, const SessionConfig& config,
                         const SyncCatalog& catalog, Residual& residual, GradientView agreed_scratch,
                         std::vector<policy::ControllerMemory> memory)
    : state_(std::make_unique<State>(transport, view, config, catalog, residual, agreed_scratch)) {
  State& s = *state_;
  auto controllers = policy::controllers_of(config.policy, catalog.controllers);
  RIVULET_CHECK(controllers, "a configured controller is not in the catalog");
  s.controllers = std::move(controllers).value();
  const FactsExchange::Parts parts{transport, s.view, s.config.policy, s.controllers,
                                   facts_head_bytes + sizeof(float) * policy::measurements_of(s.controllers)};
  s.facts = make_facts_exchange(parts);
  s.round = s.facts->first(std::move(memory));
}

SyncSession::~SyncSession() = default;

void SyncSession::send_rows(std::vector<std::vector<std::byte>> for_rank) {
  state_->outgoing_rows = std::move(for_rank);
}

std::vector<ParcelExchange::Received> SyncSession::injected_rows() const {
  return state_->injected.received();
}

bool SyncSession::speculates() const {
  return state_->contributions.speculates(state_->round->plan().next);
}

double SyncSession::expected_weight(std::uint32_t rows) const {
  return guess_weight(state_->round->plan().next, state_->me(), rows);
}

SpeculationOutcome SyncSession::early() const {
  return state_->contributions.outcome();
}

void SyncSession::begin_facts(Facts facts, const FactsSection& section, const GradientView& mine,
                              Peers peers) {
  State& s = *state_;
  RIVULET_CHECK(s.stage == Stage::resting, "begin_facts() inside a round");
  auto encoded = encode_section(section);
  if (!encoded) {
    s.fail(encoded.error());
    return;
  }
  facts.view = s.view.token;
  facts.round = s.round->state.round;
  facts.rank = s.me();
  facts.plan_hash = s.round->plan_hash;
  facts.measurements.resize(policy::measurements_of(s.controllers));
  facts.section_bytes = static_cast<std::uint32_t>(encoded.value().size());
  if (!s.residual.empty()) facts.flags |= flag_residual;
  const auto payload = s.contributions.enter(s.round->plan().next, facts, mine);
  s.begin_injected();
  s.facts->begin(encode_head(facts), std::move(encoded).value(), payload, peers);
  s.stage = Stage::facts;
  if (auto sent = s.contributions.send_behind_facts(mine); !sent) s.fail(sent.error());
}

const policy::Controllers& SyncSession::controllers() const {
  return state_->controllers;
}

std::vector<policy::FactField> SyncSession::fact_fields() const {
  std::vector<policy::FactField> all;
  for (const policy::ControllerEntry* controller : state_->controllers)
    all.insert(all.end(), controller->fact_fields.begin(), controller->fact_fields.end());
  return all;
}

bool SyncSession::peer_entered() {
  return state_->facts->peer_entered();
}

bool SyncSession::peer_requested_sync() {
  return state_->facts->peer_requested_sync();
}

void SyncSession::peers_are_due() {
  if (state_->stage == Stage::facts) state_->facts->peers_are_due();
}

void SyncSession::begin_payload(const GradientView& mine) {
  State& s = *state_;
  RIVULET_CHECK(s.stage == Stage::planned, "begin_payload() before the plan");
  switch (s.contributions.begin(*s.round, *s.facts, mine)) {
    case Progress::pending: s.stage = Stage::payload; break;
    case Progress::done: s.stage = Stage::agreed; break;
    case Progress::failed: s.fail(s.contributions.error()); break;
  }
}

const GradientView& SyncSession::agreed() const {
  RIVULET_CHECK(state_->stage == Stage::agreed, "agreed() before the exchange finished");
  return state_->contributions.agreed();
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
  if (s.stage == Stage::payload || s.stage == Stage::wasted) return s.contributions.wait();
  return s.stage == Stage::facts && s.facts->wait() && s.injected.wait();
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
  s.contributions.finish(applied);
  s.stage = Stage::resting;
}

const Error& SyncSession::error() const {
  return state_->error;
}

void SyncSession::begin_shutdown_barrier() {
  State& s = *state_;
  RIVULET_CHECK(s.stage == Stage::resting, "begin_shutdown_barrier() inside a round");
  s.goodbye.emplace(s.transport, Lane::shutdown, bye_bytes).enter();
  s.stage = Stage::goodbye;
}

}  // namespace rivulet::sync
