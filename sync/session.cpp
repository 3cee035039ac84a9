#include "sync/session.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sync/moves.h"

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
enum class Stage : std::uint8_t {
  resting,
  moves,
  facts,
  sections,
  planned,
  payload,
  agreed,
  goodbye,
  failed
};

struct SyncSession::State {
  State(Transport& t, const ViewSpec& v, const SessionConfig& c, const SyncCatalog& k, CodecShelf& shelf,
        GradientView scratch)
      : transport(t),
        view(v),
        config(c),
        catalog(k),
        codecs(shelf),
        agreed(scratch),
        moves(t, v, c.row_shape, c.rows_max) {}
  ~State() { let_go(false); }

  // constant
  Transport& transport;
  const ViewSpec view;
  const SessionConfig config;
  const SyncCatalog catalog;
  CodecShelf& codecs;
  const policy::PolicyEntry* law = nullptr;
  const GradientView agreed;

  // train thread
  Stage stage = Stage::resting;
  policy::PolicyState law_state;
  policy::RoundPlan plan;
  FactsTable table;
  MovesExchange moves;
  std::vector<Ticket> pending;                   ///< of the current stage
  std::vector<FactsHead> heads_now, heads_next;  ///< by rank; receives are posted one round ahead
  std::vector<Ticket> ahead;                     ///< by rank: this round's facts receives
  FactsHead my_head{};
  std::vector<std::byte> my_section;
  std::vector<std::vector<std::byte>> sections;  ///< by rank
  std::map<std::string, std::unique_ptr<Aggregation>, std::less<>> aggregations;
  Aggregation* aggregation = nullptr;
  Codec* codec = nullptr;  ///< has a candidate
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

  void post_facts_receives() {
    ahead.assign(transport.world(), Ticket{});
    for_each_peer([&](std::uint32_t peer) {
      ahead[peer] = transport.receive_ahead(peer, Lane::facts, heads_next[peer]);
    });
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

  Status check_table();
  Status read_heads();
  void start_sections();
  Progress finish_sections();
  Progress make_plan();
  Progress advance();
  Progress advance_agreement();
};

Status SyncSession::State::read_heads() {
  heads_now.swap(heads_next);
  for (std::uint32_t rank = 0; rank < transport.world(); ++rank) {
    auto facts = decode_head(rank == me() ? std::span<const std::byte>(my_head) : heads_now[rank]);
    if (!facts)
      return Error{ErrorCode::protocol, "from " + view.members[rank] + ": " + facts.error().message};
    table.facts[rank] = facts.value();
  }
  return check_table();
}

/// Everything that must be equal before anybody acts on the table.
Status SyncSession::State::check_table() {
  const Facts& mine = table.facts[me()];
  for (std::uint32_t rank = 0; rank < transport.world(); ++rank) {
    const Facts& f = table.facts[rank];
    const auto differs = [&](const char* what, std::uint64_t theirs, std::uint64_t ours) {
      return Error{ErrorCode::protocol, view.members[rank] + " is at " + what + " " + std::to_string(theirs) +
                                            ", this device at " + std::to_string(ours)};
    };
    if (f.view != mine.view) return differs("view", f.view, mine.view);
    if (f.round != mine.round) return differs("round", f.round, mine.round);
    if (f.rank != rank) return differs("rank", f.rank, rank);
    if (f.step != mine.step) return differs("step", f.step, mine.step);
    if (f.plan_hash != mine.plan_hash) return differs("plan", f.plan_hash, mine.plan_hash);
    for (const double number : {f.stream_rate, f.compute_seconds, f.wait_seconds, f.sync_seconds})
      if (!std::isfinite(number) || number < 0)
        return Error{ErrorCode::protocol,
                     view.members[rank] + " sent a rate or a time that is no such thing"};
  }
  if (auto text = policy::digest_disagreement(table, view.members); !text.empty())
    return Error{ErrorCode::diverged, text};
  return ok();
}

void SyncSession::State::start_sections() {
  pending.clear();
  for_each_peer([&](std::uint32_t peer) {
    const std::uint32_t bytes = table.facts[peer].section_bytes;
    sections[peer].resize(bytes);
    if (bytes > 0) pending.push_back(transport.receive(peer, Lane::section, sections[peer]));
    if (!my_section.empty()) pending.push_back(transport.send(peer, Lane::section, my_section));
  });
  sections[me()] = my_section;
  stage = Stage::sections;
}

Progress SyncSession::State::finish_sections() {
  for (std::uint32_t rank = 0; rank < transport.world(); ++rank) {
    auto section = decode_section(sections[rank]);
    if (!section)
      return fail({ErrorCode::protocol, "from " + view.members[rank] + ": " + section.error().message});
    table.sections[rank] = std::move(section).value();
  }
  return make_plan();
}

Progress SyncSession::State::make_plan() {
  plan = policy::plan(table, config.policy, *law, law_state);
  stage = Stage::planned;
  return Progress::done;
}

Progress SyncSession::State::advance_agreement() {
  const Progress p = aggregation->poll();
  if (p == Progress::failed) {
    if (transport.lost_rank() >= 0) return fail_transport();
    return fail(aggregation->error());
  }
  if (p == Progress::done) stage = Stage::agreed;
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
  const Progress p = poll_pending();
  if (p == Progress::failed) return fail_transport();
  if (p == Progress::pending) return p;
  if (stage == Stage::facts) {
    if (auto read = read_heads(); !read) return fail(read.error());
    post_facts_receives();
    start_sections();
    return poll_pending() == Progress::done ? finish_sections() : Progress::pending;
  }
  if (stage == Stage::sections) return finish_sections();
  if (stage == Stage::goodbye) stage = Stage::resting;
  return Progress::done;
}

SyncSession::SyncSession(Transport& transport, const ViewSpec& view, const SessionConfig& config,
                         const SyncCatalog& catalog, CodecShelf& codecs, GradientView agreed_scratch)
    : state_(std::make_unique<State>(transport, view, config, catalog, codecs, agreed_scratch)) {
  State& s = *state_;
  s.law = find_entry(catalog.policies, config.policy.batch_policy);
  RIVULET_CHECK(s.law != nullptr, "batch.policy was validated against the catalog");
  const std::size_t world = view.world();
  s.heads_now.resize(world);
  s.heads_next.resize(world);
  s.sections.resize(world);
  s.table.facts.resize(world);
  s.table.sections.resize(world);
  s.byes.assign(world, std::vector<std::byte>(bye_bytes));
  s.plan = policy::first_plan(world, config.policy);
  s.law_state.last = s.plan;
  s.post_facts_receives();
}

SyncSession::~SyncSession() = default;

void SyncSession::begin_moves(const BatchView& outgoing) {
  State& s = *state_;
  RIVULET_CHECK(s.stage == Stage::resting, "begin_moves inside a round");
  s.moves.begin(s.law_state.round, s.plan.next_moves, outgoing);
  s.stage = Stage::moves;
}

std::span<const GuestRow> SyncSession::guests() const {
  return state_->moves.guests();
}

void SyncSession::begin_facts(Facts facts, const FactsSection& section) {
  State& s = *state_;
  RIVULET_CHECK(s.stage == Stage::resting, "begin_facts inside a round");
  auto encoded = encode_section(section);
  if (!encoded) {
    s.fail(encoded.error());
    return;
  }
  s.my_section = std::move(encoded).value();
  facts.view = s.view.token;
  facts.round = s.law_state.round;
  facts.rank = s.me();
  facts.plan_hash = policy::hash_of(s.plan);
  facts.section_bytes = static_cast<std::uint32_t>(s.my_section.size());
  s.my_head = encode_head(facts);
  s.pending.clear();
  s.for_each_peer([&](std::uint32_t peer) {
    s.transport.promote(s.ahead[peer]);
    s.pending.push_back(s.ahead[peer]);
    s.pending.push_back(s.transport.send(peer, Lane::facts, s.my_head));
  });
  s.stage = Stage::facts;
}

bool SyncSession::peer_entered() {
  bool entered = false;
  State& s = *state_;
  s.for_each_peer(
      [&](std::uint32_t peer) { entered = entered || s.transport.poll(s.ahead[peer]) == Progress::done; });
  return entered;
}

void SyncSession::begin_payload(const GradientView& mine) {
  State& s = *state_;
  RIVULET_CHECK(s.stage == Stage::planned, "begin_payload before the plan");
  const std::string name =
      s.plan.aggregation.empty() ? std::string(policy::name_of(s.plan.reduction)) : s.plan.aggregation;
  const auto* how = find_entry(s.catalog.aggregations, name);
  RIVULET_CHECK(how != nullptr, "the plan names an aggregation that is not in the catalog");
  const auto coding = s.codecs.find(s.plan.codec);
  auto& aggregation = s.aggregations[name];
  if (!aggregation) aggregation = how->make();
  s.aggregation = aggregation.get();
  s.codec = coding.codec;
  RIVULET_CHECK(s.codec->accepts(mine.memory), "the codec cannot read this memory");
  const Exchange exchange{s.view.token, s.table.facts[s.me()].round, &s.plan, mine, s.agreed, s.codec,
                          coding.entry};
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

const policy::RoundPlan& SyncSession::plan() const {
  return state_->plan;
}
const FactsTable& SyncSession::table() const {
  return state_->table;
}
const policy::PolicyState& SyncSession::policy_state() const {
  return state_->law_state;
}
void SyncSession::go_on_from(const policy::PolicyState& state) {
  RIVULET_CHECK(state_->stage == Stage::resting && state_->law_state.round == 0,
                "go_on_from() after a round");
  state_->law_state = state;
  state_->plan = state.last;
}
std::uint64_t SyncSession::round() const {
  return state_->law_state.round;
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
  s.pending.clear();
  s.for_each_peer([&](std::uint32_t peer) {
    s.pending.push_back(s.transport.receive(peer, Lane::bye, s.byes[peer]));
    s.pending.push_back(s.transport.send(peer, Lane::bye, s.byes[s.me()]));
  });
  s.stage = Stage::goodbye;
}

}  // namespace rivulet::sync
