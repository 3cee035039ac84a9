#include "sync/round/facts_exchange.h"

#include <algorithm>
#include <cmath>

#include "sync/collective/gathered_sum.h"

namespace rivulet::sync {
namespace {

/// Ranks whose value differs from that of more than half of the devices; empty if there is no such value.
std::vector<std::uint32_t> minority(const FactsTable& table, std::uint64_t Facts::* field) {
  for (const Facts& f : table.facts) {
    std::vector<std::uint32_t> others;
    for (std::uint32_t rank = 0; rank < table.size(); ++rank)
      if (table.facts[rank].*field != f.*field) others.push_back(rank);
    if (2 * others.size() < table.size()) return others;
  }
  return {};
}

/// Posts receives of heads one round ahead. Sections are sent only if a head announces one.
class MessageFacts final : public FactsExchange {
  using Message = std::vector<std::byte>;  // head, room for a section, payload

 public:
  explicit MessageFacts(const Parts& parts)
      : parts_(parts), now_(world()), next_(world()), sections_(world()) {
    expect(0, 0);
  }

  std::shared_ptr<const Round> first(std::vector<policy::ControllerMemory> memory) override {
    return first_round(policy::first_state(parts_.view.members.list(), parts_.config, parts_.controllers,
                                           std::move(memory), parts_.view.number),
                       nullptr);
  }
  void begin(std::vector<std::byte> head, std::vector<std::byte> section, std::span<const std::byte> payload,
             Peers peers) override;
  void peers_are_due() override;
  bool peer_entered() override;
  bool peer_requested_sync() override;
  Progress poll() override;
  bool wait() override;
  Result<std::shared_ptr<const Round>> finish(const std::shared_ptr<const Round>& last) override;
  void expect(std::size_t section_bytes, std::size_t payload_bytes) override;
  Result<GradientView> add_up(const Exchange& exchange) override;

 private:
  [[nodiscard]] std::uint32_t world() const { return parts_.transport.world(); }
  [[nodiscard]] std::uint32_t me() const { return parts_.transport.rank(); }
  template <class F>
  void for_each_peer(F f) {
    for (std::uint32_t k = 1; k < world(); ++k) f((me() + k) % world());
  }
  Status read_heads();
  void start_sections();
  [[nodiscard]] std::span<const std::byte> section_of(std::uint32_t rank) const;
  Progress poll_pending();

  const Parts parts_;
  std::vector<Message> now_, next_;  ///< by rank
  std::size_t room_now_ = 0;         ///< room for sections in now_
  std::size_t room_next_ = 0;
  std::vector<Ticket> ahead_;  ///< by rank: receives of next_
  std::vector<Ticket> pending_;
  std::vector<std::byte> my_section_;
  std::vector<std::vector<std::byte>> sections_;  ///< by rank: separately received sections
  FactsTable table_;
  bool heads_here_ = false;
  Status checked_ = ok();  ///< result of checking the heads
};

void MessageFacts::begin(std::vector<std::byte> head, std::vector<std::byte> section,
                         std::span<const std::byte> payload, Peers peers) {
  Message& mine = next_[me()];
  mine = message_of(std::move(head), section, room_next_, payload);
  RIVULET_CHECK(world() == 1 || mine.size() == next_[(me() + 1) % world()].size(), "unexpected payload size");
  my_section_ = std::move(section);
  heads_here_ = false;
  pending_.clear();
  for_each_peer([&](std::uint32_t peer) {
    pending_.push_back(ahead_[peer]);
    pending_.push_back(parts_.transport.send_ahead(peer, Lane::facts, mine));
  });
  if (peers == Peers::due) peers_are_due();
}

void MessageFacts::peers_are_due() {
  for (const Ticket ticket : pending_) parts_.transport.promote(ticket);
}

void MessageFacts::expect(std::size_t section_bytes, std::size_t payload_bytes) {
  room_next_ = section_bytes;
  ahead_.assign(world(), Ticket{});
  for_each_peer([&](std::uint32_t peer) {
    next_[peer].resize(parts_.head_bytes + section_bytes + payload_bytes);
    ahead_[peer] = parts_.transport.receive_ahead(peer, Lane::facts, next_[peer]);
  });
}

Result<GradientView> MessageFacts::add_up(const Exchange& exchange) {
  const GradientView& sum = exchange.agreed;
  std::ranges::fill(sum.host_bytes(), std::byte{0});
  const auto payload_of = [&](std::uint32_t rank) {
    return std::span<const std::byte>(now_[rank]).subspan(parts_.head_bytes + room_now_);
  };
  if (auto added = add_payloads(exchange, payload_of, sum); !added) return added.error();
  return sum;
}

bool MessageFacts::peer_entered() {
  bool entered = false;
  for_each_peer([&](std::uint32_t peer) {
    entered = entered || parts_.transport.poll(ahead_[peer]) == Progress::done;
  });
  return entered;
}

bool MessageFacts::peer_requested_sync() {
  bool called = false;
  for_each_peer([&](std::uint32_t peer) {
    called = called || (parts_.transport.poll(ahead_[peer]) == Progress::done &&
                        requests_sync(std::span(next_[peer]).first(parts_.head_bytes)));
  });
  return called;
}

/// Returns done when all tickets are done.
Progress MessageFacts::poll_pending() {
  Progress all = Progress::done;
  for (const Ticket t : pending_) {
    const Progress p = parts_.transport.poll(t);
    if (p == Progress::failed) return p;
    if (p == Progress::pending) all = p;
  }
  return all;
}

Progress MessageFacts::poll() {
  if (const Progress p = poll_pending(); p != Progress::done || heads_here_) return p;
  heads_here_ = true;
  checked_ = read_heads();
  if (!checked_) return Progress::done;
  start_sections();
  return poll_pending();
}

bool MessageFacts::wait() {
  for (const Ticket t : pending_)
    if (parts_.transport.poll(t) == Progress::pending) return parts_.transport.wait(t);
  return true;
}

Status MessageFacts::read_heads() {
  now_.swap(next_);
  room_now_ = room_next_;
  table_ = {};
  table_.facts.resize(world());
  table_.sections.resize(world());
  for (std::uint32_t rank = 0; rank < world(); ++rank)
    if (auto read = read_head(std::span(now_[rank]).first(parts_.head_bytes), parts_.view, rank, table_);
        !read)
      return read;
  return check_table(table_, parts_.view);
}

void MessageFacts::start_sections() {
  pending_.clear();
  for_each_peer([&](std::uint32_t peer) {
    const std::uint32_t bytes = table_.facts[peer].section_bytes;
    if (bytes > room_now_) {
      sections_[peer].resize(bytes);
      pending_.push_back(parts_.transport.receive(peer, Lane::section, sections_[peer]));
    }
    if (my_section_.size() > room_now_)
      pending_.push_back(parts_.transport.send(peer, Lane::section, my_section_));
  });
  sections_[me()] = my_section_;
}

std::span<const std::byte> MessageFacts::section_of(std::uint32_t rank) const {
  const std::uint32_t bytes = table_.facts[rank].section_bytes;
  if (bytes > room_now_) return sections_[rank];
  return std::span(now_[rank]).subspan(parts_.head_bytes, bytes);
}

Result<std::shared_ptr<const Round>> MessageFacts::finish(const std::shared_ptr<const Round>& last) {
  if (!checked_) return checked_.error();
  for (std::uint32_t rank = 0; rank < world(); ++rank)
    if (auto read = read_section(section_of(rank), parts_.view, rank, table_); !read) return read.error();
  return next_round(std::move(table_), *last, parts_);
}

}  // namespace

std::size_t section_room(const policy::Schedule& next) {
  constexpr std::size_t most = 1024;
  if (!next.local) return 0;
  const bool small = std::ranges::all_of(next.rows, [](std::uint32_t rows) { return rows < 128; });
  const std::size_t of_ahead = next.local->overlap ? 8 + 2 : 0;
  return std::min(most, 8 + next.local->steps * std::size_t{small ? 1U : 2U} + of_ahead);
}

std::vector<std::byte> message_of(std::vector<std::byte> head, std::span<const std::byte> section,
                                  std::size_t room, std::span<const std::byte> payload) {
  std::vector<std::byte> message = std::move(head);
  const std::size_t behind = message.size() + room;
  if (section.size() <= room) message.insert(message.end(), section.begin(), section.end());
  message.resize(behind);
  message.insert(message.end(), payload.begin(), payload.end());
  return message;
}

Status read_head(std::span<const std::byte> bytes, const ViewSpec& view, std::uint32_t rank,
                 FactsTable& table) {
  auto facts = decode_head(bytes);
  if (!facts)
    return Error{ErrorCode::protocol, "from " + view.members[rank] + ": " + facts.error().message, {rank}};
  table.facts[rank] = facts.value();
  return ok();
}

Status read_section(std::span<const std::byte> bytes, const ViewSpec& view, std::uint32_t rank,
                    FactsTable& table) {
  auto section = decode_section(bytes);
  if (!section)
    return Error{ErrorCode::protocol, "from " + view.members[rank] + ": " + section.error().message, {rank}};
  table.sections[rank] = std::move(section).value();
  return ok();
}

bool requests_sync(std::span<const std::byte> head) {
  const auto facts = decode_head(head);
  return facts && (facts.value().flags & flag_early) != 0;
}

Status check_table(const FactsTable& table, const ViewSpec& view) {
  const Facts& mine = table.facts[view.rank];
  for (std::uint32_t rank = 0; rank < view.world(); ++rank) {
    const Facts& f = table.facts[rank];
    const auto differs = [&](const char* what, std::uint64_t Facts::* field) {
      return Error{ErrorCode::protocol,
                   view.members[rank] + " is at " + what + " " + std::to_string(f.*field) +
                       ", this device at " + std::to_string(mine.*field),
                   minority(table, field)};
    };
    if (f.view != mine.view) return differs("view", &Facts::view);
    if (f.round != mine.round) return differs("round", &Facts::round);
    if (f.rank != rank)
      return Error{ErrorCode::protocol,
                   view.members[rank] + " is at rank " + std::to_string(f.rank) + ", this device at " +
                       std::to_string(rank),
                   {rank}};
    if (f.step != mine.step) return differs("step", &Facts::step);
    if (f.plan_hash != mine.plan_hash) return differs("plan", &Facts::plan_hash);
    for (const double number : {f.stream_rate, f.compute_seconds, f.wait_seconds, f.sync_seconds})
      if (!std::isfinite(number) || number < 0)
        return Error{ErrorCode::protocol,
                     view.members[rank] + " sent a rate or a time that is negative or not finite",
                     {rank}};
  }
  auto different = policy::digest_disagreement(table, view.members.list());
  if (!different.text.empty())
    return Error{ErrorCode::diverged, std::move(different.text), std::move(different.minority)};
  return ok();
}

std::shared_ptr<const Round> next_round(FactsTable table, const Round& last,
                                        const FactsExchange::Parts& parts) {
  policy::PolicyState state = last.state;
  policy::plan(table, parts.config, parts.controllers, state);
  return std::make_shared<const Round>(std::move(table), std::move(state), last.work.check());
}

std::unique_ptr<FactsExchange> make_facts_exchange(const FactsExchange::Parts& parts) {
  return parts.transport.gathering() != nullptr ? make_gathered_facts(parts) : make_message_facts(parts);
}

std::unique_ptr<FactsExchange> make_message_facts(const FactsExchange::Parts& parts) {
  return std::make_unique<MessageFacts>(parts);
}

}  // namespace rivulet::sync
