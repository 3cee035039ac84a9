#include <algorithm>

#include "sync/collective/gathered_sum.h"
#include "sync/round/facts_exchange.h"
#include "sync/transport/gathering.h"

namespace rivulet::sync {
namespace {

/// The heads of a round, decoded and checked.
struct Heads {
  FactsTable table;            ///< without sections
  std::uint32_t sections = 0;  ///< ranks whose section follows
  bool fits = false;           ///< false: each device derives its own error
  bool operator==(const Heads&) const = default;
};

class GatheredFacts final : public FactsExchange {
 public:
  explicit GatheredFacts(const Parts& parts) : parts_(parts), gathering_(*parts.transport.gathering()) {}

  std::shared_ptr<const Round> first(std::vector<policy::ControllerMemory> memory) override {
    SharedWork& work = gathering_.work();
    return work.once<Round>(nullptr, [&] {
      return first_round(policy::first_state(parts_.view.members.list(), parts_.config, parts_.controllers,
                                             memory, parts_.view.number),
                         work.check());
    });
  }
  void begin(std::vector<std::byte> head, std::vector<std::byte> section, std::span<const std::byte> payload,
             Peers peers) override;
  void peers_are_due() override { parts_.transport.promote(pending_); }
  bool peer_entered() override { return gathering_.anything_contributed(Lane::facts); }
  bool peer_requested_sync() override;
  Progress poll() override;
  Result<std::shared_ptr<const Round>> finish(const std::shared_ptr<const Round>& last) override;
  void expect(std::size_t section_bytes, std::size_t payload_bytes) override {
    room_next_ = section_bytes;
    payload_bytes_ = payload_bytes;
  }
  Result<GradientView> add_up(const Exchange& exchange) override;

 private:
  Status read_heads(FactsTable& table) const;
  [[nodiscard]] std::shared_ptr<const Heads> make_heads() const;
  Status read_sections(FactsTable& table) const;
  std::shared_ptr<const Round> make_round(const Round& last) const;

  const Parts parts_;
  Gathering& gathering_;
  std::size_t payload_bytes_ = 0;  ///< payload size after each head and its room
  std::size_t room_ = 0;           ///< room for sections in this round
  std::size_t room_next_ = 0;
  Ticket pending_;
  std::vector<std::byte> my_section_;
  std::shared_ptr<Gathered> contributed_;    ///< heads of this round
  std::shared_ptr<const Heads> heads_;       ///< null until received
  std::shared_ptr<Gathered> sections_;       ///< null if none is announced, and until received
  std::shared_ptr<const PayloadSum> total_;  ///< sum of this round's payloads
};

void GatheredFacts::begin(std::vector<std::byte> head, std::vector<std::byte> section,
                          std::span<const std::byte> payload, Peers peers) {
  room_ = room_next_;
  auto message = message_of(std::move(head), section, room_, payload);
  if (section.size() <= room_) section.clear();
  my_section_ = std::move(section);
  heads_.reset();
  sections_.reset();
  pending_ = gathering_.contribute({.lane = Lane::facts,
                                    .bytes = std::move(message),
                                    .contributors = parts_.view.world(),
                                    .patient = peers == Peers::have_time});
}

bool GatheredFacts::peer_requested_sync() {
  if (!peer_entered()) return false;
  for (std::uint32_t rank = 0; rank < parts_.view.world(); ++rank) {
    const auto bytes = gathering_.received(Lane::facts, rank);
    if (bytes.size() >= parts_.head_bytes && requests_sync(bytes.first(parts_.head_bytes))) return true;
  }
  return false;
}

Progress GatheredFacts::poll() {
  if (const Progress p = parts_.transport.poll(pending_); p != Progress::done) return p;
  if (heads_) {
    if (heads_->sections > 0 && !sections_) sections_ = gathering_.take(pending_);
    return Progress::done;
  }
  contributed_ = gathering_.take(pending_);
  heads_ = contributed_->work.once<Heads>(nullptr, [&] { return make_heads(); });
  if (!heads_->fits || heads_->sections == 0) return Progress::done;
  const bool listens = my_section_.empty();
  pending_ = gathering_.contribute({.lane = Lane::section,
                                    .bytes = std::move(my_section_),
                                    .contributors = heads_->sections,
                                    .receives_only = listens});
  return poll();
}

/// Errors are from this device's perspective.
Status GatheredFacts::read_heads(FactsTable& table) const {
  for (std::uint32_t rank = 0; rank < parts_.view.world(); ++rank) {
    const std::span<const std::byte> bytes = contributed_->of[rank];
    if (bytes.size() != parts_.head_bytes + room_ + payload_bytes_)
      return Error{
          ErrorCode::protocol, "from " + parts_.view.members[rank] + ": unexpected length of facts", {rank}};
    if (auto read = read_head(bytes.first(parts_.head_bytes), parts_.view, rank, table); !read) return read;
  }
  return check_table(table, parts_.view);
}

std::shared_ptr<const Heads> GatheredFacts::make_heads() const {
  auto heads = std::make_shared<Heads>();
  heads->table.facts.resize(parts_.view.world());
  heads->table.sections.resize(parts_.view.world());
  heads->fits = bool(read_heads(heads->table));
  if (!heads->fits) return heads;
  heads->sections = static_cast<std::uint32_t>(
      std::ranges::count_if(heads->table.facts, [&](const Facts& f) { return f.section_bytes > room_; }));
  return heads;
}

Status GatheredFacts::read_sections(FactsTable& table) const {
  for (std::uint32_t rank = 0; rank < parts_.view.world(); ++rank) {
    const std::uint32_t announced = table.facts[rank].section_bytes;
    std::span<const std::byte> bytes;
    if (announced <= room_)
      bytes = std::span(contributed_->of[rank]).subspan(parts_.head_bytes, announced);
    else if (sections_)
      bytes = sections_->of[rank];
    if (bytes.size() != announced)
      return Error{ErrorCode::protocol,
                   "from " + parts_.view.members[rank] + ": unexpected length of the section",
                   {rank}};
    if (auto read = read_section(bytes, parts_.view, rank, table); !read) return read;
  }
  return ok();
}

/// Returns null if a section is invalid.
std::shared_ptr<const Round> GatheredFacts::make_round(const Round& last) const {
  FactsTable table = heads_->table;
  if (!read_sections(table)) return nullptr;
  return next_round(std::move(table), last, parts_);
}

Result<std::shared_ptr<const Round>> GatheredFacts::finish(const std::shared_ptr<const Round>& last) {
  if (!heads_->fits) {
    FactsTable table = heads_->table;
    return read_heads(table).error();
  }
  auto round = contributed_->work.once<Round>(last, [&] { return make_round(*last); });
  if (round == nullptr) {
    FactsTable table = heads_->table;
    return read_sections(table).error();
  }
  sections_.reset();
  return round;
}

Result<GradientView> GatheredFacts::add_up(const Exchange& exchange) {
  total_ = contributed_->work.once<PayloadSum>(nullptr, [&] {
    return std::make_shared<PayloadSum>(sum_of_payloads(exchange, [&](std::uint32_t rank) {
      return std::span<const std::byte>(contributed_->of[rank]).subspan(parts_.head_bytes + room_);
    }));
  });
  if (!total_->trouble.empty()) return Error{total_->code, total_->trouble};
  return total_->view(exchange.agreed);
}

}  // namespace

std::unique_ptr<FactsExchange> make_gathered_facts(const FactsExchange::Parts& parts) {
  RIVULET_CHECK(parts.transport.gathering() != nullptr, "this transport does not gather");
  return std::make_unique<GatheredFacts>(parts);
}

}  // namespace rivulet::sync
