#include "tests/support/watched_gather.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "core/check.h"
#include "tests/support/kill_board.h"

namespace rivulet::testing {
namespace {

using namespace sync;

constexpr std::size_t piece_bytes = std::size_t{64} * 1024;

bool is_payload(Lane lane) {
  return lane == Lane::payload || lane == Lane::speculative;
}

/// Posts a message in pieces, equally on both sides.
class WatchedTransport final : public Transport {
 public:
  WatchedTransport(Transport& inner, KillPage& page) : inner_(inner), page_(page) {}
  [[nodiscard]] std::uint32_t rank() const noexcept override { return inner_.rank(); }
  [[nodiscard]] std::uint32_t world() const noexcept override { return inner_.world(); }
  Progress connected() override { return inner_.connected(); }
  Ticket send(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) override {
    return add({.peer = peer,
                .lane = lane,
                .sending = true,
                .bytes = {const_cast<std::byte*>(bytes.data()), bytes.size()}});  // read-only
  }
  Ticket receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) override {
    return add({.peer = peer, .lane = lane, .bytes = bytes});
  }
  Ticket receive_ahead(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) override {
    return add({.peer = peer, .lane = lane, .ahead = true, .bytes = bytes});
  }
  Ticket send_ahead(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) override {
    return add({.peer = peer,
                .lane = lane,
                .sending = true,
                .ahead = true,
                .bytes = {const_cast<std::byte*>(bytes.data()), bytes.size()}});  // read-only
  }
  void promote(Ticket ticket) override {
    Message* message = find(ticket);
    if (message == nullptr) return;
    message->ahead = false;
    for (const Piece& piece : message->pieces) inner_.promote(piece.ticket);
  }
  Progress poll(Ticket ticket) override {
    for (auto& message : messages_)
      if (advance(message) == Progress::failed) return Progress::failed;
    const Message* message = find(ticket);
    const bool done = message == nullptr || message->is_done();
    for (; !messages_.empty() && messages_.front().is_done(); ++forgotten_) messages_.pop_front();
    return done ? Progress::done : Progress::pending;
  }
  bool wait(Ticket ticket) override {
    const Message* message = find(ticket);
    return message != nullptr && !message->pieces.empty() && inner_.wait(message->pieces.front().ticket);
  }
  /// Posted payload bytes that are not done.
  [[nodiscard]] std::uint64_t open_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& message : messages_)
      if (is_payload(message.lane) && !message.is_done()) bytes += message.bytes.size();
    return bytes;
  }
  bool healthy() override { return inner_.healthy(); }
  [[nodiscard]] const Error& error() const override { return inner_.error(); }
  [[nodiscard]] int lost_rank() const noexcept override { return inner_.lost_rank(); }
  [[nodiscard]] TransportCounters counters() const noexcept override { return inner_.counters(); }

 private:
  struct Piece {
    Ticket ticket;
    std::size_t bytes = 0;
  };
  struct Message {
    std::uint32_t peer = 0;
    Lane lane{};
    bool sending = false;
    bool ahead = false;
    std::span<std::byte> bytes;
    bool posted = false;
    std::deque<Piece> pieces;  ///< not done yet
    [[nodiscard]] bool is_done() const { return posted && pieces.empty(); }
  };

  Ticket add(Message message) {
    if (is_payload(message.lane)) page_.total += message.bytes.size();
    messages_.push_back(std::move(message));
    post(messages_.back());
    return {forgotten_ + messages_.size()};
  }
  /// Null: done and removed.
  Message* find(Ticket ticket) {
    return ticket.id <= forgotten_ ? nullptr : &messages_[ticket.id - forgotten_ - 1];
  }
  [[nodiscard]] bool held_back(const Message& message) const {
    return message.sending && is_payload(message.lane) && ((page_.hold_back >> message.peer) & 1U) != 0;
  }
  void post(Message& message) {
    if (message.posted || held_back(message)) return;
    message.posted = true;
    for (auto rest = message.bytes; !rest.empty();) {
      const auto piece = rest.first(std::min(rest.size(), piece_bytes));
      message.pieces.push_back({post_piece(message, piece), piece.size()});
      rest = rest.subspan(piece.size());
    }
  }
  Ticket post_piece(const Message& message, std::span<std::byte> piece) {
    if (message.sending && message.ahead) return inner_.send_ahead(message.peer, message.lane, piece);
    if (message.sending) return inner_.send(message.peer, message.lane, piece);
    if (message.ahead) return inner_.receive_ahead(message.peer, message.lane, piece);
    return inner_.receive(message.peer, message.lane, piece);
  }
  Progress advance(Message& message) {
    post(message);
    if (!message.posted) return inner_.healthy() ? Progress::pending : Progress::failed;
    while (!message.pieces.empty()) {
      const Progress p = inner_.poll(message.pieces.front().ticket);
      if (p != Progress::done) return p;
      if (is_payload(message.lane)) page_.sent += message.pieces.front().bytes;
      message.pieces.pop_front();
    }
    return Progress::done;
  }

  Transport& inner_;
  KillPage& page_;
  std::deque<Message> messages_;
  std::uint64_t forgotten_ = 0;  ///< removed messages before those
};

class WatchedGather final : public Aggregation {
 public:
  explicit WatchedGather(std::unique_ptr<Aggregation> inner) : inner_(std::move(inner)) {}
  Status begin(Transport& transport, const Exchange& exchange) override {
    page_->sent = 0;
    page_->total = 0;
    page_->phase = KillPage::Phase::payload;
    wires_.emplace(transport, *page_);
    return inner_->begin(*wires_, exchange);
  }
  Progress poll() override {
    const Progress p = inner_->poll();
    if (p != Progress::pending) page_->phase = KillPage::Phase::idle;
    return p;
  }
  bool wait() override { return inner_->wait(); }
  [[nodiscard]] const Error& error() const override { return inner_->error(); }

 private:
  const std::shared_ptr<KillPage> page_ = KillBoard::of_this_process();
  std::optional<WatchedTransport> wires_;
  std::unique_ptr<Aggregation> inner_;
};

/// For rounds with speculation.
class WatchedEarly final : public SpeculativeAggregation {
 public:
  explicit WatchedEarly(std::unique_ptr<SpeculativeAggregation> inner) : inner_(std::move(inner)) {}
  Status send(Transport& transport, const Exchange& exchange, bool has_rows) override {
    if (!wires_) wires_.emplace(transport, *page_);
    page_->sent = 0;
    auto sent = inner_->send(*wires_, exchange, has_rows);
    page_->total = page_->sent + wires_->open_bytes();
    page_->phase = KillPage::Phase::payload;
    return sent;
  }
  Status begin(Transport&, const Exchange& exchange) override { return inner_->begin(*wires_, exchange); }
  void give_up(std::span<const std::uint32_t> rows) override { inner_->give_up(rows); }
  Progress poll() override {
    const Progress p = inner_->poll();
    if (p != Progress::pending) page_->phase = KillPage::Phase::idle;
    return p;
  }
  bool wait() override { return inner_->wait(); }
  [[nodiscard]] const Error& error() const override { return inner_->error(); }

 private:
  const std::shared_ptr<KillPage> page_ = KillBoard::of_this_process();
  std::optional<WatchedTransport> wires_;
  std::unique_ptr<SpeculativeAggregation> inner_;
};

const AggregationEntry& product_gather() {
  for (const auto* entry : builtin_aggregations())
    if (entry->name == watched_gather.name) return *entry;
  RIVULET_CHECK(false, "the product has no gather");
}

}  // namespace

const sync::AggregationEntry watched_gather{
    "gather", "test only: gather that can be watched",
    []() -> std::unique_ptr<Aggregation> { return std::make_unique<WatchedGather>(product_gather().make()); },
    nullptr,
    [](bool gathers) -> std::unique_ptr<SpeculativeAggregation> {
      return std::make_unique<WatchedEarly>(product_gather().make_speculative(gathers));
    }};

}  // namespace rivulet::testing
